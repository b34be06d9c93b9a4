"""Result files of VCR's leaderboard, read and written: CSV of probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen_vision.published import read_rows

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import json_lines, tidy

from ..results import add_row, csv_rows
from .files import read_item
from .items import CHOICES

PLACES = range(CHOICES)


class VcrResults(ResultFiles):
    """The leaderboard's CSV: per item the probabilities of 4 answers, and of 4 rationales for each answer.
    References are VCR's JSON lines.

    Examples are `ITEM-answer`, `ITEM-rationale` (given the right answer) and `ITEM-rationale-K` (given answer K)."""

    name = "vcr"
    groups = ("answer", *(f"rationale_conditioned_on_a{k}" for k in PLACES))
    columns = tuple(f"{group}_{choice}" for group in groups for choice in PLACES)

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        examples_by_id = {example.id: example for example in examples}
        rows: dict[str, dict[str, list[float]]] = {}
        header: list[str] = []

        def take(row: list[str]) -> None:
            if not header:
                header.extend(cell.strip() for cell in row)
                if missing := [name for name in ("annot_id", *self.columns) if name not in header]:
                    raise DataError(f"no column '{missing[0]}'; VCR's file has annot_id and {len(self.columns)} more")
                return
            if len(row) != len(header):
                raise DataError(f"{len(row)} cells, but the header has {len(header)} columns")
            cells = dict(zip(header, row, strict=True))
            shares = {
                group: [_parse_probability(cells[f"{group}_{k}"], f"{group}_{k}") for k in PLACES]
                for group in self.groups
            }
            add_row(rows, tidy(cells["annot_id"], "annot_id"), shares)

        read_rows(csv_rows(path), path, take)
        values: dict[str, Any] = {}
        for item, shares in rows.items():
            item_shares = {f"{item}-answer": shares["answer"]}
            item_shares |= {f"{item}-rationale-{k}": shares[self.groups[1 + k]] for k in PLACES}
            right = (
                examples_by_id[f"{item}-answer"].labels.get("choice") if f"{item}-answer" in examples_by_id else None
            )
            if isinstance(right, int) and right in PLACES:
                item_shares[f"{item}-rationale"] = item_shares[f"{item}-rationale-{right}"]
            elif f"{item}-rationale" in examples_by_id:
                raise DataError(
                    f"{path}: '{item}-rationale' needs the right answer, which these examples do not have; score with "
                    'examples of both subtasks, data.subtask = "both"'
                )
            known = {
                id_: _most_probable(row_shares) for id_, row_shares in item_shares.items() if id_ in examples_by_id
            }
            values |= known or {item: _most_probable(shares["answer"])}
        return values

    def read_references(self, path: Path) -> list[Example]:
        examples: dict[str, Example] = {}

        def take(row: Any) -> None:
            item = read_item(row)
            for subtask, right in (("answer", item.answer), ("rationale", item.rationale)):
                facts = {"asks": subtask, "item": item.id, "group": item.id, "image": item.image}
                example_id = f"{item.id}-{subtask}"
                add_row(
                    examples, example_id, Example(example_id, {}, (), facts, {} if right is None else {"choice": right})
                )

        read_rows(json_lines(path), path, take)
        return [*examples.values()]

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        items = dict.fromkeys(str(example.facts.get("item", example.id)) for example in examples)
        lines = [",".join(("annot_id", *self.columns))]
        for item in items:
            ids = (f"{item}-answer", *(f"{item}-rationale-{k}" for k in PLACES))
            if missing := [example_id for example_id in ids if example_id not in values]:
                raise DataError(
                    f"no prediction for '{missing[0]}': VCR's file has the rationales of all four answers; give "
                    '--set data.subtask="every" (steps.NAME.data.subtask for a step with its own data), and the steps '
                    "of both subtasks with --step"
                )
            lines.append(
                ",".join(
                    [
                        item,
                        *(
                            repr(share)
                            for example_id in ids
                            for share in _read_probabilities(values[example_id], example_id)
                        ),
                    ]
                )
            )
        return "".join(line + "\n" for line in lines)


def _most_probable(shares: list[float]) -> dict[str, Any]:
    return {"choice": max(PLACES, key=shares.__getitem__), "probabilities": shares}


def _read_probabilities(value: Any, example_id: str) -> list[float]:
    shares = value.get("probabilities") if isinstance(value, Mapping) else None
    if not isinstance(shares, list | tuple) or len(shares) != CHOICES:
        raise DataError(f"'{example_id}': the prediction must have the probabilities of 4 choices, not {value!r:.60}")
    return [float(share) for share in shares]


def _parse_probability(cell: str, name: str) -> float:
    try:
        share = float(cell)
        if share - share == 0:  # finite
            return share
    except ValueError:
        pass
    raise DataError(f"{name} must be a number, not {cell!r:.40}")
