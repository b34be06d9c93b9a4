"""Fuzzing of the tasks' result files and references. A naive reader checks each."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from random import Random
from typing import Any

from . import mutations
from .harness import Surface

GROUPS = ("answer", *(f"rationale_conditioned_on_a{k}" for k in range(4)))
COLUMNS = tuple(f"{group}_{choice}" for group in GROUPS for choice in range(4))
WHOLE: dict[str, tuple[str, Any]] = {  # form -> a file's name, and what is in it: JSON, or text
    "vqa": ("r.json", [{"question_id": 1, "answer": "red"}, {"question_id": 20, "answer": "Two dogs."}]),
    "nlvr2": ("r.csv", "dev-1-0-0,True\ndev-1-1-0,false\ndev-2-0-1,False\n"),
    "vcr": ("r.csv", f"annot_id,{','.join(COLUMNS)}\nval-0{',0.25' * 20}\nval-1{',1e-3' * 20}\n"),
    "boxes": ("r.json", [{"id": 1, "box": [0, 0.5, 1, 1]}, {"id": "b", "box": [1, 2, 30, 40]}]),
    "phrases": ("r.json", [{"id": 1, "boxes": [[0, 0.5, 1, 1], [0, 0, 1, 1]]}, {"id": "b", "boxes": []}]),
}
ANSWERS = [{"answer": "red"}] * 9 + [{"answer": "blue"}]
ITEM = {
    "img_fn": "film/still.jpg",
    "objects": ["person"],
    "question": ["why", "?"],
    "answer_choices": [["it", "is", [0]]] * 4,
    "rationale_choices": [["so"]] * 4,
    "rationale_label": 2,
}
TRUTHS: dict[str, tuple[str, Any]] = {
    "vqa": ("t.json", {"annotations": [{"question_id": 1, "image_id": 9, "answer_type": "other", "answers": ANSWERS}]}),
    "nlvr2": ("t.json", [{"identifier": f"dev-1-{pair}-0", "sentence": "a", "label": "True"} for pair in range(3)]),
    "vcr": ("t.json", [{**ITEM, "annot_id": f"val-{n}", "answer_label": n} for n in range(3)]),
    "boxes": ("t.json", {"references": [{"id": 1, "box": [0, 0, 1, 1], "type": "people", "image": 9}]}),
    "phrases": ("t.json", [{"id": 1, "box": [0, 0, 1, 1], "type": "people"}, {"id": 2, "box": [0, 0, 2, 3]}]),
}
LINES = ("nlvr2", "vcr")  # whose references are JSON lines
PLACED = r":\d+|\[\d+\]|not a file of|cannot be|over \d+|not usable|is a gzip archive|name it \."


def surfaces() -> list[Surface]:
    return [
        Surface("result_files", _prepare, _spoiler(WHOLE), _results, _check_results, PLACED),
        Surface("truths", _prepare, _spoiler(TRUTHS), _truths, _check_truths, PLACED),
    ]


def _prepare(folder: Path) -> Any:
    import mmgen_tasks as metrics

    configs = (metrics.VqaAccuracy, metrics.PairAccuracy, metrics.ChoiceAccuracy, metrics.BoxAccuracy)
    forms = [config.result_files() for config in (*configs, metrics.PhraseRecall)]
    return {form.name: form for form in forms}


def _spoiler(wholes: dict[str, tuple[str, Any]]) -> Any:
    def spoil(draw: Random, folder: Path, _: Any) -> Path:
        form = draw.choice([*wholes])
        name, valid = wholes[form]
        path = folder / f"{form}.{name}"
        text = _text(draw, form, valid, name.startswith("t"))
        if draw.random() < 0.3:
            data = mutations.bytes_(draw, text.encode("utf-8", "surrogatepass"))
            path.write_bytes(draw.choice((data, gzip.compress(data, mtime=0))))
        else:
            mutations.write(path, text)
        return path

    return spoil


def _text(draw: Random, form: str, valid: Any, truth: bool) -> str:
    if truth and form in LINES:
        rows = [json.dumps(row) for row in valid]
        place = draw.randrange(len(rows))
        rows[place] = mutations.json_(draw, valid[place])
        return "\n".join(rows)
    if not isinstance(valid, str):
        return mutations.json_(draw, valid)
    rows = valid.splitlines()
    place = draw.randrange(len(rows))
    cells = rows[place].split(",")
    cells[draw.randrange(len(cells))] = str(draw.choice(mutations.ODD_VALUES))
    rows[place] = draw.choice((",", ",", ";")).join(cells)
    if draw.random() < 0.2:
        rows.append(draw.choice(rows))
    return "\n".join(rows)


def _form(path: Path) -> str:
    return path.name.partition(".")[0]


def _results(path: Path, forms: Any) -> Any:
    return forms[_form(path)].read(path, [])


def _truths(path: Path, forms: Any) -> Any:
    return forms[_form(path)].read_references(path)


def _plain(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")


def _check_results(path: Path, content: dict[str, Any], _: Any) -> None:
    form, text = _form(path), _plain(path)
    if form in ("nlvr2", "vcr"):
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if any(cell.strip() for cell in row)]
        if not rows:
            assert not content
            return
        if form == "vcr":
            names = [cell.strip() for cell in rows[0]]
            table = [dict(zip(names, row, strict=True)) for row in rows[1:]]
            said = {" ".join(row["annot_id"].split()): [float(row[f"answer_{k}"]) for k in range(4)] for row in table}
            assert {key: value["probabilities"] for key, value in content.items()} == said
            return
        rows = rows[rows[0][0].strip().lower() in ("identifier", "id") :]
        assert {" ".join(row[0].split()): row[1].strip().lower() for row in rows} == {
            key: value["label"].lower() for key, value in content.items()
        }
        return
    table = json.loads(text)
    rows = table["results"] if isinstance(table, dict) else table
    key = {"vqa": "answer", "boxes": "box", "phrases": "boxes"}[form]
    id_key = "question_id" if form == "vqa" else "id"
    said = {" ".join(str(row[id_key]).split()): row[key] for row in rows}
    assert said == {name: value["box"] if form == "boxes" else value for name, value in content.items()}


def _check_truths(path: Path, content: list[Any], _: Any) -> None:
    form, text = _form(path), _plain(path)
    rows = [json.loads(line) for line in text.split("\n") if line.strip()] if form in LINES else json.loads(text)
    if isinstance(rows, dict):
        rows = rows["annotations" if form == "vqa" else "references"]
    if form == "vqa":
        # as the official evaluation puts an answer on one line; other blanks stay
        said = [
            tuple(answer["answer"].replace("\n", " ").replace("\t", " ").strip() for answer in row["answers"])
            for row in rows
        ]
        assert said == [example.targets for example in content]
    elif form == "nlvr2":
        said = [row.get("label") for row in rows]
        said = [label if label is None or isinstance(label, bool) else label.lower() == "true" for label in said]
        assert said == [example.labels.get("truth") for example in content]
    elif form == "vcr":
        said = [row.get(f"{subtask}_label") for row in rows for subtask in ("answer", "rationale")]
        assert said == [example.labels.get("choice") for example in content]
    else:
        boxes = [example.labels["box"] if form == "boxes" else example.labels["phrases"][0][2] for example in content]
        assert [tuple(row["box"]) for row in rows] == boxes
