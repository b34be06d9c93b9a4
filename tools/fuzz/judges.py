"""Fuzzing of human evaluation: a sheet's page, requests to a program with its ratings, the key, and filled sheets. A
naive reader checks each."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from kit import humaneval

from . import mutations
from .harness import Surface

SHEETS = ("a.json", "b.json", "c.json")


def surfaces() -> list[Surface]:
    return [
        Surface("ratings", _prepare, _spoil_ratings, _fill, _check_filled, named=r"ratings\.jsonl|requests\.jsonl"),
        Surface("judged", _prepare, _spoil_sheets, _judged, _check_judged, lines=3, named=r"key\.json|[abc]\.json"),
        Surface("judge_page", _prepare, _spoil_page, _requests, _check_requests, named=r"sheet\.html"),
    ]


def _prepare(folder: Path) -> Any:
    from mmgen_humaneval.form import FILLED, make
    from mmgen_humaneval.program import write_requests
    from mmgen_humaneval.systems import gather

    from mmgen.registry import installed

    logging.getLogger("mmgen").setLevel(logging.ERROR)
    run = humaneval.write_run(folder / "run")
    form = make(gather([run], (), installed()), folder / "sheet.html", count=3)
    write_requests(form.page, folder / "requests.jsonl")
    key = json.loads(form.key.read_text())
    form.key.rename(folder / "key.json")
    header, *lines = map(json.loads, (folder / "requests.jsonl").read_text().splitlines())
    requests = [line for line in lines if "key" in line]
    ratings = [
        {"key": line["key"], "rating": 1 + number % 5, "model": "judge-1"} for number, line in enumerate(requests)
    ]
    (folder / "ratings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in ratings))
    sheets = {}
    for place, name in enumerate(SHEETS):
        filled = {
            question["id"]: {
                criterion: 1 + (place + number + 2 * column) % 5 for column, criterion in enumerate(key["criteria"])
            }
            for number, question in enumerate(key["questions"])
        }
        sheet = {"format": FILLED, "sheet": key["sheet"], "judge": name, "ratings": filled}
        sheets[name] = sheet | ({"program": True} if place == 2 else {})
        (folder / name).write_text(json.dumps(sheets[name]))
    return {"key": key, "sheets": sheets, "requests": [header, *requests], "ratings": ratings}


def _spoil_lines(draw: Random, path: Path, rows: list[Any]) -> Path:
    lines = [json.dumps(row) for row in rows]
    place = draw.choice((0, draw.randrange(len(rows)), draw.randrange(len(rows))))
    what = draw.random()
    if what < 0.2:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
        return path
    if what < 0.3:
        lines.insert(draw.randrange(len(lines) + 1), draw.choice(lines))
    else:
        lines[place] = mutations.json_(draw, rows[place], [1, 5, 6, rows[-1].get("key", "x")])
    mutations.write(path, draw.choice(("\n", "\n", "\r\n", "\n\n")).join(lines))
    return path


def _spoil_ratings(draw: Random, folder: Path, prepared: Any) -> Path:
    name = draw.choice(("requests", "ratings", "ratings"))
    return _spoil_lines(draw, folder / f"{name}.jsonl", prepared[name])


def _fill(path: Path, _) -> Any:
    from mmgen_humaneval.program import fill

    place = path.parent
    filled = fill(place / "requests.jsonl", place / "ratings.jsonl", "", place / "filled.json")
    return filled, json.loads((place / "filled.json").read_text(encoding="utf-8"))


def _rows(path: Path) -> list[Any]:
    text = path.read_bytes().decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def _check_filled(path: Path, content: Any, _) -> None:
    filled, sheet = content
    header, *requests = _rows(path.with_name("requests.jsonl"))
    requests = [line for line in requests if "key" in line]
    ratings: dict[str, set[int]] = {}
    keys = {line["key"] for line in requests}
    models = set()
    for line in _rows(path.with_name("ratings.jsonl")):
        if isinstance(line.get("key"), str) and line["key"] in keys:
            ratings.setdefault(line["key"], set()).add(line["rating"])
            models |= {line["model"]} if isinstance(line.get("model"), str) else set()
    assert all(len(values) == 1 and min(values) in range(1, 6) for values in ratings.values()), f"{ratings}"
    expected: dict[tuple[str, str], int] = {}
    for line in requests:
        if line["key"] in ratings:
            (value,) = ratings[line["key"]]
            assert expected.setdefault((line["id"], line["criterion"]), value) == value, f"{line} is rated twice"
    actual = {(key, name): value for key, by_name in sheet["ratings"].items() for name, value in by_name.items()}
    assert actual == expected and filled.ratings + filled.missing == len(requests), f"{sheet} of {ratings}"
    assert sheet["sheet"] == header["sheet"] and isinstance(sheet["sheet"], str), f"sheet {sheet['sheet']!r}"
    assert {sheet["judge"]} == models and sheet["program"] is True, f"{sheet['judge']} of {models}"


def _spoil_sheets(draw: Random, folder: Path, prepared: Any) -> Path:
    name = draw.choice(("key.json", *SHEETS))
    path = folder / name
    valid = prepared["key"] if name == "key.json" else prepared["sheets"][name]
    if draw.random() < 0.2:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        mutations.write(path, mutations.json_(draw, valid, [1, 5, 6, "a.json", "A.JSON", *SHEETS]))
    return path


def _judged(path: Path, _) -> Any:
    """The table of `mmgen judge score`."""
    from mmgen_humaneval.answers import read
    from mmgen_humaneval.statistics import evaluate, format_result

    sheets = [path.with_name(name) for name in SHEETS]
    partial = len(path.read_bytes()) % 2 == 0
    answers = read(path.with_name("key.json"), sheets, partial)
    return answers, "\n".join(format_result(evaluate(answers)))


def _check_judged(path: Path, content: Any, _) -> None:
    answers, text = content
    key = json.loads(path.with_name("key.json").read_bytes().decode("utf-8"))
    sheets = [json.loads(path.with_name(name).read_bytes().decode("utf-8")) for name in SHEETS]
    assert list(answers.judges) == [sheet["judge"].strip() for sheet in sheets]
    assert answers.programs == {sheet["judge"].strip() for sheet in sheets if sheet.get("program") is True}
    assert list(answers.criteria) == key["criteria"] and list(answers.systems) == key["systems"]
    for criterion in key["criteria"]:
        expected = [
            [sheet["ratings"].get(question["id"], {}).get(criterion) for question in key["questions"]]
            for sheet in sheets
        ]
        table = np.array(expected, float)
        assert np.array_equal(answers.ratings[criterion], table, equal_nan=True), f"{criterion} is another"
        assert np.isnan(table).all() or np.nanmin(table) >= 1 and np.nanmax(table) <= 5
    for system in key["systems"]:
        assert system in text or not system.isprintable()
        places = [n for n, question in enumerate(key["questions"]) if system in question["systems"]]
        assert answers.questions[system].tolist() == places, f"questions of {system}"


def _spoil_page(draw: Random, folder: Path, prepared: Any) -> Path:
    path = folder / "sheet.html"
    text = path.read_text(encoding="utf-8")
    match = _data(text)
    if draw.random() < 0.2:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        data = mutations.json_(draw, json.loads(match[1]), ["picture", "caption", ["data:,x"], "clarity"])
        mutations.write(path, text[: match.start(1)] + data + text[match.end(1) :])
    return path


def _data(text: str) -> re.Match[str]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match, "no data in the page"
    return match


def _requests(path: Path, _) -> Any:
    from mmgen_humaneval.program import write_requests

    out = path.with_name("out.jsonl")
    return write_requests(path, out), _rows(out)


def _check_requests(path: Path, content: Any, _) -> None:
    count, (header, *lines) = content
    data = json.loads(_data(path.read_bytes().decode("utf-8"))[1])
    requests = [line for line in lines if "key" in line]
    assert count == len(requests) and header["sheet"] == data["sheet"]
    criteria = [name for part in data["rounds"] for name in part["criteria"]]
    expected = [
        (question["id"], name)
        for item in data["items"]
        for part in data["rounds"]
        for question in item["questions"]
        for name in part["criteria"]
    ]
    assert header["criteria"] == criteria and [(line["id"], line["criterion"]) for line in requests] == expected
    texts = iter(
        question["text"]
        for item in data["items"]
        for part in data["rounds"]
        for question in item["questions"]
        for _ in part["criteria"]
    )
    for line, text in zip(requests, texts, strict=True):
        assert isinstance(line["id"], str) and (text or "(nothing was written)") in line["prompt"], (
            f"{line} of {text!r}"
        )
