"""Fuzzing of the input files of `mmgen score` and `mmgen generate`, and of the commands with meaningless arguments."""

from __future__ import annotations

import csv
import gzip
import io
import json
import logging
import re
from pathlib import Path
from random import Random
from typing import Any

from mmgen.files import image_key

from . import mutations
from .harness import INTERNAL, Surface
from .questions import CSV, spoilt

RESULTS = [
    {"image_id": 25, "caption": "What is it?"},
    {"image_id": 71, "caption": "Why?"},
    {"image_id": "000000000009.jpg", "caption": "How?"},
]
SHAPES: list[Any] = [
    RESULTS,
    {"annotations": RESULTS},
    {
        "questions": [
            {"question_id": 1, "image_id": 25, "question": "What?"},
            {"question_id": 2, "image_id": 71, "question": "Who?"},
        ]
    },
    {"25": "What?", "71": ["Why?", "Who?"], "9": "How?"},
    {"id": "25", "text": "What is it?"},
]
LINES = [
    [
        {"id": "25", "questions": ["What?", "Why?"]},
        {"id": "71", "questions": [{"text": "Who?", "score": -0.5}]},
        {"id": "9", "error": "not an image"},
    ],
    [
        [{"id": "25", "text": "What?", "tokens": [1], "score": -1.0}, {"id": "25", "text": "Why?"}],
        [{"id": "71", "text": "How?"}],
    ],
    [{"id": 25, "references": ["What?"]}, {"image": "COCO_val2014_000000000071.jpg", "text": "Why?"}],
]
WRITTEN = ("questions", "predictions", "texts", "captions", "text", "prediction", "question", "caption")
ASKED = ("references", "questions", "targets", "captions", "texts", "reference", "question", "text", "caption")


def surfaces() -> list[Surface]:
    placed = r":\d+|entry|contains no|no such|cannot be|over \d+|unpack it first"
    return [
        Surface("predictions", _prepare, _spoil, _predictions, _check_predictions, placed),
        Surface("references", _prepare, _spoil, _references, _check_references, placed),
        Surface("text_tables", _prepare, _spoil_table, _references, _check_table, placed),
        Surface(
            "requests",
            _prepare,
            _spoil_requests,
            _requests,
            _check_requests,
            r":\d+|no queries|cannot be|over \d+|unpack it first",
        ),
        Surface("commands", _commands, _command, _run_command, _check_command, lines=80),
    ]


def _prepare(folder: Path) -> Any:
    from mmgen.registry import installed

    return {"registry": installed()}


def _spoil(draw: Random, folder: Path, _) -> Path:
    if draw.random() < 0.5:
        text = mutations.json_(draw, draw.choice(SHAPES))
    else:
        rows = [json.dumps(row) for row in draw.choice(LINES)]
        place = draw.randrange(len(rows))
        rows[place] = mutations.json_(draw, json.loads(rows[place]))
        text = draw.choice(("\n", "\n", "\r\n", "\n\n")).join(rows)
    path = folder / draw.choice(("texts.json", "texts.jsonl"))
    if draw.random() < 0.2:
        data = mutations.bytes_(draw, text.encode("utf-8", "surrogatepass"))
        path.write_bytes(
            draw.choice((data, gzip.compress(data, mtime=0), mutations.bytes_(draw, gzip.compress(data, mtime=0))))
        )
    else:
        mutations.write(path, text)
    return path


def _predictions(path: Path, _) -> Any:
    from mmgen.scoring import pair, read_predictions
    from mmgen.scoring.files import References
    from mmgen.tensors import Example

    predictions = read_predictions(path)
    examples = tuple(Example(key, {}, ("What?",)) for key in ("25", "71", "9"))
    if set(predictions) & {"25", "71", "9"}:
        pair(predictions, References(examples), path, partial=True)
    return predictions


def _references(path: Path, prepared: Any) -> Any:
    from mmgen.scoring import read_references

    read_references(path, prepared["registry"], "question")
    return {example.id: list(example.targets) for example in read_references(path, prepared["registry"]).examples}


def _check_predictions(path: Path, content: Any, _) -> None:
    _check(path, content, WRITTEN)


def _check_references(path: Path, content: Any, _) -> None:
    _check(path, content, ASKED)


def _check(path: Path, content: Any, names: tuple[str, ...]) -> None:
    """Compare with a simple reader: rows, each with an id and texts."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    try:
        rows = json.loads(text)
        if isinstance(rows, dict):
            lists = [
                rows[name]
                for name in ("annotations", "questions")
                if isinstance(rows.get(name), list)
                and rows[name]
                and isinstance(rows[name][0], dict)
                and "text" not in rows[name][0]
            ]
            single = any(name in rows for name in ("image_id", "id", "image", "question_id"))
            rows = (
                lists[0]
                if lists
                else [rows]
                if single
                else [{"id": key, "texts": value} for key, value in rows.items()]
            )
    except ValueError:
        rows = [json.loads(line) for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
    expected: dict[str, list[str]] = {}
    rows = rows if isinstance(rows, list) else [rows]
    for row in [inner for outer in rows for inner in (outer if isinstance(outer, list) else [outer])]:
        if names == WRITTEN and "error" in row:
            continue
        entry_key = next(
            row[name]
            for name in ("image_id", "id", "image", "question_id")
            if isinstance(row.get(name), str | int) and not isinstance(row[name], bool)
        )
        value = row[next(name for name in names if name in row)]
        expected.setdefault(_key(str(entry_key)), []).extend(
            entry["text"] if isinstance(entry, dict) else entry
            for entry in (value if isinstance(value, list) else [value])
        )
    assert content == expected, f"{content} where the file says {expected}"


def _key(text: str) -> str:
    """A path that is not an image is an ordinary id."""
    key = image_key(text)
    return text if key == text.rpartition("/")[2] else key


def _spoil_table(draw: Random, folder: Path, _) -> Path:
    path = folder / draw.choice(("texts.csv", "texts.tsv"))
    text = spoilt(draw, CSV)
    mutations.write(path, text if path.suffix == ".csv" else text.replace("\t", " ").replace(",", "\t"))
    if draw.random() < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


def _check_table(path: Path, content: Any, _) -> None:
    """Compare with a simple reader: an id and texts in every row."""
    text = path.read_bytes().decode("utf-8-sig")
    tabs = path.suffix == ".tsv"
    header, *rows = filter(None, csv.reader(io.StringIO(text, newline=""), delimiter="\t" if tabs else ","))
    names = [name.strip() for name in header]
    expected: dict[str, list[str]] = {}
    for row in rows:
        values = dict(zip(names, row, strict=True))
        key = next(values[name].strip() for name in ("image_id", "id", "image", "question_id") if name in values)
        cell = values[next(name for name in ASKED if name in values)]
        expected.setdefault(_key(key), []).extend(part.strip() for part in cell.split("---"))
    assert content == expected, f"{content} where the file says {expected}"


# --- what to ask about ---


def _spoil_requests(draw: Random, folder: Path, _) -> Path:
    rows: list[Any] = [
        {"image": "photo.jpg", "caption": "a dog", "id": "one"},
        {"image": "b/c.png"},
        {"caption": "a tree"},
    ]
    place = draw.randrange(3)
    lines = [json.dumps(row) for row in rows]
    lines[place] = mutations.json_(draw, rows[place], ["/etc/passwd", "a\0b.jpg", 3, ["photo.jpg"]])
    path = folder / "requests.jsonl"
    mutations.write(path, draw.choice(("\n", "\r\n", "\n\n")).join(lines))
    if draw.random() < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


def _requests(path: Path, _) -> Any:
    from mmgen.errors import DataError
    from mmgen.inference.query import read_sources
    from mmgen.inference.query_pictures import as_picture

    sources = read_sources([path])
    for request in sources:
        for value in request.inputs.values():
            try:
                if (picture := as_picture(value, request.id, request.folder)) is not None:
                    picture.load()
            except (DataError, ValueError):
                continue
    return sources


def _check_requests(path: Path, content: Any, _) -> None:
    text = path.read_bytes().decode("utf-8-sig")
    rows = [line for line in text.split("\n") if line.strip()]
    if not rows:
        return
    assert len(rows) == len(content), f"{len(content)} requests of {len(rows)} lines"
    for line, request in zip(rows, content, strict=True):
        if request.problem:
            assert request.problem.startswith(f"{path}:") and "\n" not in request.problem, request.problem
            continue
        row = json.loads(line)
        inputs = {name: value for name, value in row.items() if name != "id" and value not in (None, "", [])}
        assert isinstance(request.id, str) and request.inputs == inputs, f"{request} of {row}"


# --- commands ---


def _commands(folder: Path) -> Any:
    """Files of all kinds, each passed to every command."""
    import h5py
    from PIL import Image

    from .folders import runs
    from .recipes import TOY

    logging.getLogger("mmgen").setLevel(logging.ERROR)
    (folder / "folder").mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "toy.toml").write_text(TOY, encoding="utf-8")
    (folder / "bad.toml").write_text("name = 3\n[", encoding="utf-8")
    (folder / "texts.json").write_text(json.dumps(RESULTS), encoding="utf-8")
    (folder / "texts.jsonl").write_text('{"caption": "a dog"}\n{"image": 3}\n', encoding="utf-8")
    (folder / "binary.bin").write_bytes(bytes(range(256)))
    Image.new("RGB", (8, 8)).save(folder / "photo.jpg")
    (folder / "loop").symlink_to("loop")
    (folder / "away.h5").symlink_to("/nowhere/at/all.h5")
    with h5py.File(folder / "other.h5", "w") as file:
        file["x"] = [1.0]
    return {"run": runs() / "runs/toy/default/seed-0"}


def _command(draw: Random, folder: Path, prepared: Any) -> Path:
    names = [
        "folder",
        "empty",
        "toy.toml",
        "bad.toml",
        "texts.json",
        "texts.jsonl",
        "binary.bin",
        "photo.jpg",
        "other.h5",
        "loop",
        "away.h5",
        "missing",
        "x" * 300,
        "empty/below",
        "a\nb",
        "\x1b[2J",
        "-",
        ".",
        "é.toml",
        "/dev/null",
        "~",
    ]
    first, two, three = (draw.choice([*names, str(prepared["run"])]) for _ in range(3))
    settings = draw.choice(
        (
            "inputs=3",
            "data=3",
            "steps=1",
            "seed=-1",
            "x",
            "=",
            "training.epochs=x",
            "backbone.type='none'",
            "inputs.image=1",
            "metrics.a=1",
            "type=3",
            "model=3",
            "class_names='missing'",
            "index='texts.json'",
            "profile=1",
            "steps.words=2",
            "a.b.c.d=[]",
        )
    )
    kinds = draw.choice(("bottom_up_tsv", "npz_folder", "lxmert_h5", "roi", "timm_grid", "none", "", "regions"))
    sets = draw.choice(([], ["--set", settings]))
    prepared["arguments"] = draw.choice(
        (
            ["show", first, *sets],
            ["check", first, two, *sets],
            ["features", "info", first],
            ["features", "import", first, two, "--type", kinds, *sets],
            ["features", "extract", first, two, "--type", kinds, *sets, "--set", "image_size=32"],
            ["data", "check", first, *sets],
            [
                "score",
                first,
                "--references",
                two,
                *draw.choice(
                    (
                        [],
                        ["--against", three],
                        ["--train", three],
                        ["--profile", "x"],
                        ["--split", "x"],
                        ["--json", three],
                        ["--metric", "x"],
                        ["--set", settings],
                    )
                ),
            ],
            ["generate", str(prepared["run"]), first],
            ["generate", first, two],
            [
                "generate",
                str(prepared["run"]),
                first,
                "--caption",
                draw.choice(("", "a dog", "\0", "\ud800", "x " * 3000)),
                "--n",
                "2",
            ],
            ["generate", first, "--step", "x", "--caption", "a"],
            ["generate", str(prepared["run"]), "--caption", "a dog", "--out", first],
            ["report", first],
            ["score", first, "--references", two, "--json", first],
            ["score", first, "--references", two, "--resamples", "1000000000000"],
            ["judge", "score", first, two],
            ["judge", "score", first, two, "--json", two],
            ["judge", "make", first, "--out", two],
            ["data", "check", first, "--list-missing", first],
            ["generate", str(prepared["run"]), first, "--out", first],
            ["run", first, "--step", "none", *sets],
            ["show", "toy.toml", "--profile", first],
            ["init", first],
            ["find", str(prepared["run"]), "photo.jpg", "--input", "caption=a dog", "--index", first],
        )
    )
    return folder / "arguments"


def _run_command(path: Path, prepared: Any) -> Any:
    import contextlib
    import os

    from click.testing import CliRunner

    from mmgen.cli import main

    before = Path.cwd()
    os.chdir(path.parent)
    try:
        with contextlib.redirect_stderr(None):
            result = CliRunner().invoke(main, prepared["arguments"])
    finally:
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise RuntimeError(
            f"{prepared['arguments']}: {type(result.exception).__name__}: {result.exception}"
        ) from result.exception
    return result


def _check_command(path: Path, content: Any, prepared: Any) -> None:
    output, arguments = content.output, prepared["arguments"]
    assert "Traceback" not in output and not INTERNAL.search(output), f"{arguments}: {output[-500:]}"
    assert content.exit_code in (0, 1, 2), f"{arguments}: exit code {content.exit_code}"
    if content.exit_code:
        assert re.search(r"error: \S" if content.exit_code == 1 else r"[Ee]rror: \S", output), (
            f"{arguments}: {output[-500:]}"
        )
    else:
        assert output.strip(), f"{arguments}: no output"
    assert "\x1b[2J" not in output, f"{arguments}: control characters reach the terminal"
