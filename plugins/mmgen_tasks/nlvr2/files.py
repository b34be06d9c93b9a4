"""Reads NLVR2's JSON lines as a data set: a statement, two photographs, and whether it is true (Suhr et al., 2019)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmgen_vision.find_files import Finder
from mmgen_vision.published import read_rows
from mmgen_vision.truths import LABELS, truth_of

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.reading.text import json_lines, kind, require_keys, tidy

from ..dataset import CountedExamples, PublishedDataset

if TYPE_CHECKING:
    from .config import Nlvr2

SUBSETS = ("dev", "test1")  # the splits that have balanced and unbalanced files


class Nlvr2Files(PublishedDataset):
    """Examples of an `Nlvr2` config.

    id       the identifier, "dev-850-0-1"
    inputs   "image": `All` of the keys of the left and the right picture, "dev-850-0-img0" and "-img1"; "statement"
    labels   "truth": bool; absent where the file has no label
    facts    group: the identifier without its pair; all examples of one sentence share it
    """

    name = "NLVR2"
    licence = "statements and labels: CC BY 4.0; images: their owners' terms"
    source = "github.com/lil-lab/nlvr, nlvr2/data"
    advice = "put the files there, or name other files in data.files"
    config: Nlvr2

    def find(self, finder: Finder, split: str) -> Path:
        if split in self.config.files:
            return finder.file([self.config.files[split]], "")
        if self.config.pairs != "all" and split in SUBSETS:
            name = f"{self.config.pairs}/{self.config.pairs}_{split}.json"
            return finder.file([name, Path(name).name], f"{self.source}/{name}")
        return finder.file([f"{split}.json"], f"{self.source}/{split}.json")

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"truth": LABELS}

    def read(self, split: str) -> CountedExamples:
        examples: dict[str, Example] = {}
        counts: Counter[str] = Counter()

        def take(row: Any) -> None:
            example = read_example(row)
            if example.id in examples:
                raise DataError(f"duplicate identifier '{example.id}'")
            if example.inputs["statement"]:
                examples[example.id] = example
            else:
                counts["without_text"] += 1

        read_rows(json_lines(self.files[split]), self.files[split], take)
        return CountedExamples([*examples.values()], counts)


def read_example(row: Any) -> Example:
    """The example of a line. Raises DataError."""
    require_keys(row, "identifier", "sentence")
    identifier, sentence = tidy(row["identifier"], "identifier"), tidy(row["sentence"], "sentence")
    split, group, _, number = _split_identifier(identifier)
    labels = {}
    if row.get("label") is not None:
        labels["truth"] = _parse_truth(row["label"])
    images = pictures_of(identifier)
    return Example(
        identifier, {"image": All(images), "statement": sentence}, (), {"group": f"{split}-{group}--{number}"}, labels
    )


def pictures_of(identifier: str) -> tuple[str, str]:
    """The keys of the left and the right picture. Raises DataError."""
    split, group, pair, _ = _split_identifier(identifier)
    return f"{split}-{group}-{pair}-img0", f"{split}-{group}-{pair}-img1"


def _split_identifier(identifier: str) -> list[str]:
    parts = identifier.rsplit("-", 3)
    if len(parts) != 4 or not all(parts):
        raise DataError(f"identifier '{identifier:.60}' must have the form split-set-pair-sentence")
    return parts


def _parse_truth(label: Any) -> bool:
    known = truth_of(label)
    if known is None:
        raise DataError(f'label must be "True" or "False", not {_show_label(label)}')
    return known


def _show_label(label: Any) -> str:
    return f"{label!r:.60}" if isinstance(label, str) else kind(label)
