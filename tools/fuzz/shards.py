"""Fuzzing of the answers of shards, which are merged into one file. A naive reader checks the merged answers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from . import mutations
from .harness import Surface

SHARDS, QUERIES = 3, 8
HEADER = {
    "queries": QUERIES,
    "ids": "0f" * 8,
    "inputs": "f0" * 8,
    "step": "both",
    "weights": "01234567",
    "decoding": {"num_beams": 1},
}
ODD_NAMES = ("0-of-3", "4-of-3", "1-of-999999999999", "2-of-2", "01-of-3", "1-of-0", "２-of-3", "3-of-3 ", "-1-of-3")


def surfaces() -> list[Surface]:
    return [Surface("answer_shards", _prepare, _spoil, _read, _check, named=r"answers")]


def _prepare(folder: Path) -> Any:
    shards = {}
    for number in range(1, SHARDS + 1):
        rows: list[dict[str, Any]] = [{"shard": f"{number}/{SHARDS}", **HEADER}]
        rows += [
            {"number": query, "id": f"q{query}", "texts": [{"text": f"what is {query}?", "score": -0.5}]}
            for query in range(number - 1, QUERIES, SHARDS)
        ]
        name = f"answers-{number}-of-{SHARDS}.jsonl"
        shards[name] = rows
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return shards


def _spoil(draw: Random, folder: Path, shards: Any) -> Path:
    name = draw.choice(list(shards))
    path, what = folder / name, draw.random()
    if what < 0.2:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    elif what < 0.3:
        odd = folder / f"answers-{draw.choice(ODD_NAMES)}.jsonl"
        path.rename(odd) if draw.random() < 0.5 else odd.write_bytes(path.read_bytes())
    elif what < 0.35:
        path.unlink()
    elif what < 0.4:
        value = draw.choice(mutations.ODD_VALUES)
        for file, (header, *rows) in shards.items():  # all agree on a wrong header
            mutations.write(
                folder / file, "".join(json.dumps(row) + "\n" for row in ({**header, "queries": value}, *rows))
            )
    elif what < 0.43:
        odd = folder / "answers-1-of-999999999999.jsonl"
        for file in shards:
            (folder / file).unlink()
        odd.write_text(json.dumps({"shard": "1/999999999999", **HEADER}))
    else:
        rows = [json.dumps(row) for row in shards[name]]
        place = draw.choice((0, draw.randrange(len(rows))))
        rows[place] = mutations.json_(draw, shards[name][place], [0, 7, 8, -1, 10**12, True, 2.0, "1/3"])
        if draw.random() < 0.2:
            rows.insert(draw.randrange(len(rows) + 1), draw.choice(rows))
        mutations.write(path, draw.choice(("\n", "\n", "\r\n", "\n\n")).join(rows) + "\n")
    return folder / "answers.jsonl"


def _read(path: Path, _) -> Any:
    from mmgen.inference.shard_answers import merged

    return list(merged(path))


def _check(path: Path, content: Any, _) -> None:
    """The answers of all files, in the order of their numbers."""
    headers, answers = [], {}
    for shard in range(1, SHARDS + 1):
        file = path.with_name(f"answers-{shard}-of-{SHARDS}.jsonl")
        header, *rows = [json.loads(line) for line in file.read_bytes().split(b"\n") if line]
        headers.append({name: value for name, value in header.items() if name != "shard"})
        for row in rows:
            number = row.pop("number")
            assert number not in answers and isinstance(number, int) and not isinstance(number, bool), f"{row}"
            answers[number] = row
    assert all(header == headers[0] for header in headers), f"headers {headers}"
    assert sorted(answers) == list(range(headers[0]["queries"])), f"{sorted(answers)}"
    assert content == [answers[number] for number in sorted(answers)], "other answers than in the files"
