"""Fuzzing of question files: VQA's JSON, VQG's CSV, COCO's captions, JSONL. A naive reader checks each."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from mmgen.files import image_key

from . import mutations
from .harness import Surface

VQA = {
    "info": {"year": 2015},
    "license": {"name": "CC"},
    "questions": [
        {"image_id": 25, "question": "What  is it?", "question_id": 250},
        {"image_id": 25, "question": "Why the\ndog?", "question_id": 251},
        {"image_id": "COCO_val2014_000000000071.jpg", "question": "How many?", "question_id": 710},
        {"image_id": 9, "question": "Où?", "question_id": 90},
    ],
}
CAPTIONS = {
    "images": [{"id": 25}],
    "annotations": [
        {"image_id": 25, "id": 1, "caption": "A dog by a ball."},
        {"image_id": 25, "id": 2, "caption": "Ein Hund"},
        {"image_id": 71, "id": 3, "caption": "Two trees."},
        {"image_id": 9, "id": 4, "caption": "A sea"},
    ],
}
CSV = (
    'image_id,image_url,questions\n25,http://x/25.jpg,What is it?---Why?---How many?\n71,http://x/71.jpg,"Is it, or '
    'not?---Who"\n9,,Où est-il?\n'
)
JSONL = "".join(
    json.dumps(row, ensure_ascii=False) + "\n"
    for row in (
        {"id": 25, "image": "25.jpg", "caption": "A dog", "questions": ["What?", "Why?"], "place": "park"},
        {
            "id": "71",
            "image": "COCO_val2014_000000000071.jpg",
            "captions": ["Two trees", "Wood"],
            "questions": "How many?",
        },
        {"id": "nine", "questions": ["Où?"], "tags": ["sea", "sky"], "caption": ""},
    )
)
PLACED = (
    r":\d+|\[\d+\]|not a file of|no examples remain|cannot be unpacked|cannot be read|over \d+ GiB|no column|"
    r"unpack it first"
)


def surfaces() -> list[Surface]:
    return [
        _surface("vqa", "questions.json", VQA, _vqa),
        _surface("captions", "captions.json", CAPTIONS, _coco),
        _surface("vqg", "questions.csv", CSV, _vqg),
        _surface("jsonl", "questions.jsonl", JSONL, _jsonl),
    ]


def _surface(name: str, file: str, valid: Any, naive: Callable[[str], dict]) -> Surface:
    text = valid if isinstance(valid, str) else json.dumps(valid, ensure_ascii=False)

    def prepare(folder: Path) -> None:
        logging.getLogger("mmgen").setLevel(logging.ERROR)
        (folder / "questions.json").write_text(json.dumps(VQA), encoding="utf-8")
        (folder / "captions.json").write_text(json.dumps(CAPTIONS), encoding="utf-8")

    def spoil(draw: Random, folder: Path, _) -> Path:
        path = folder / file
        if draw.random() < 0.35:
            data = mutations.bytes_(draw, text.encode())
            packed = draw.random() < 0.3
            path.write_bytes(mutations.bytes_(draw, gzip.compress(data, mtime=0)) if packed else data)
        else:
            mutations.write(path, spoilt(draw, valid))
        return path

    return Surface(
        name,
        prepare,
        spoil,
        lambda path, _: _read(name, path),
        lambda path, content, _: _check(path, content, naive),
        PLACED,
    )


def spoilt(draw: Random, valid: Any) -> str:
    """Damage a file by its structure: JSON values, the values of a line, or the cells of a table."""
    if not isinstance(valid, str):
        return mutations.json_(draw, valid)
    rows = valid.splitlines()
    place = draw.randrange(len(rows))
    if rows[place].startswith("{"):
        rows[place] = mutations.json_(draw, json.loads(rows[place]))
        if draw.random() < 0.3:
            rows.insert(draw.randrange(len(rows) + 1), draw.choice(rows))
        return draw.choice(("\n", "\n", "\r\n", "\n\n")).join(rows)
    cells = rows[place].split(",")
    cells[draw.randrange(len(cells))] = str(draw.choice(mutations.ODD_VALUES))
    rows[place] = draw.choice((",", ",", ";", "\t")).join(cells)
    draw.choice(
        (lambda: None, lambda: draw.shuffle(rows), lambda: rows.append(rows[place]), lambda: rows.insert(0, ""))
    )()
    return "\n".join(rows)


def _read(name: str, path: Path) -> dict[str, tuple]:
    """Examples of a data set with this file: key -> captions, questions, other inputs."""
    from mmgen_questions import Jsonl, Vqa, Vqg

    config = {"vqa": Vqa, "captions": Vqa, "vqg": Vqg, "jsonl": Jsonl}[name]
    file = "questions.json" if name == "captions" else path.name
    files = {split: file for split in ("train", "val", "test")}
    captions = ("captions.json",) if name == "captions" else ()
    dataset = config(folder=path.parent, files=files, caption_files=captions, missing="keep").build()
    dataset.describe()
    examples = {}
    for example in dataset.split("train"):
        inputs = dict(example.inputs)
        examples[example.id.removeprefix("train-")] = (tuple(inputs.pop("caption", ())), example.targets, inputs)
    return examples


def _check(path: Path, content: dict, naive: Callable[[str], dict]) -> None:
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    expected = {
        key: (tuple(captions), tuple(questions), inputs)
        for key, (captions, questions, inputs) in naive(text).items()
        if questions
    }
    assert content == expected, f"{content} where the file says {expected}"


def _key(value: Any) -> str:
    return str(value) if isinstance(value, int) else image_key(" ".join(value.split()))


def _plain(text: str) -> str:
    return " ".join(text.split())


def _vqa(text: str, captions: dict | None = None) -> dict:
    examples, seen = {}, set()
    for row in json.loads(text)["questions"]:
        key = _plain(str(row["question_id"])) if "question_id" in row else None
        if key is None or key not in seen:
            seen |= {key}
            entry = examples.setdefault(_key(row["image_id"]), ([], [], {"image": _key(row["image_id"])}))
            entry[1].extend([_plain(row["question"])] if _plain(row["question"]) else [])
    return examples


def _coco(text: str) -> dict:
    table, examples, seen = json.loads(text), _vqa(json.dumps(VQA)), set()
    for row in table if isinstance(table, list) else table["annotations"]:
        key = (_key(row["image_id"]), _plain(str(row["id"]))) if "id" in row else None
        if (key is None or key not in seen) and _key(row["image_id"]) in examples and _plain(row["caption"]):
            examples[_key(row["image_id"])][0].append(_plain(row["caption"]))
        seen |= {key}
    return examples


def _vqg(text: str) -> dict:
    header, *rows = filter(None, csv.reader(io.StringIO(text, newline="")))
    examples: dict = {}
    for row in rows:
        values = dict(zip([name.strip() for name in header], row, strict=True))
        key = _key(values["image_id"])
        exists = key in examples
        entry = examples.setdefault(key, ([], [], {"image": key}))
        before = list(entry[1])
        entry[1].extend(q for q in map(_plain, values["questions"].split("---")) if q and not (exists and q in before))
    return examples


def _jsonl(text: str) -> dict:
    examples = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            row = json.loads(line)
            key = _plain(str(row.pop("id", number)))
            assert key not in examples, f"two lines of the id '{key}'"
            questions, captions = (
                _list(row.pop("questions")),
                _list(row.pop("caption", [])) + _list(row.pop("captions", [])),
            )
            image = row.pop("image", None)
            inputs = {} if image is None else {"image": _key(image)}
            inputs |= {
                name: tuple(_list(value, True)) if isinstance(value, list) else _plain(value)
                for name, value in row.items()
            }
            examples[key] = (captions, questions, inputs)
    return examples


def _list(value: Any, empty: bool = False) -> list[str]:
    texts = [_plain(text) for text in (value if isinstance(value, list) else [value])]
    return texts if empty else [text for text in texts if text]
