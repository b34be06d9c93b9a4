"""NLVR2 (Suhr et al., 2019): is a statement true of two photographs? JSON lines, accuracy and consistency, CSV."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from mmgen_vision.configs import About, Published
from mmgen_vision.truths import LABELS, truth_of
from pydantic import AfterValidator, BeforeValidator, Field

from mmgen.errors import DataError
from mmgen.examples import All, Example, Prediction, Scores
from mmgen.reading.results import ResultFiles
from mmgen.reading.rows import Line, Row
from mmgen.reading.text import rows

from .columns import Accuracy, Column, prediction_value

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData


def _identifier(text: str) -> str:
    if len(parts := text.rsplit("-", 3)) != 4 or not all(parts):
        raise ValueError(f"'{text:.60}' must have the form split-set-pair-sentence")
    return text


def _truth(label: Any) -> bool | None:
    if label is not None and truth_of(label) is None:
        raise ValueError(f'must be "True" or "False", not {label!r:.60}')
    return truth_of(label)


class Statement(Row):
    """A line."""

    identifier: Annotated[Line, AfterValidator(_identifier)]
    sentence: Line
    label: Annotated[bool | None, BeforeValidator(_truth)] = None

    def example(self) -> Example:
        """The example of `Nlvr2.read`."""
        split, group, pair, number = self.identifier.rsplit("-", 3)
        images = All((f"{split}-{group}-{pair}-img0", f"{split}-{group}-{pair}-img1"))
        labels = {} if self.label is None else {"truth": self.label}
        inputs = {"image": images, "statement": self.sentence}
        return Example(self.identifier, inputs, (), {"group": f"{split}-{group}--{number}"}, labels)


class Nlvr2(Published):
    """NLVR2: is a statement true of two photographs? `files = { dev = "balanced/balanced_dev.json" }` names one of the
    published subsets."""

    type: Literal["nlvr2"] = "nlvr2"
    about = About(
        "NLVR2",
        "statements and labels: CC BY 4.0; images: their owners' terms",
        "github.com/lil-lab/nlvr, nlvr2/data",
    )
    published = ("train", "dev", "test1", "test2")
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    validation_split: str = Field("dev", description="the split whose loss is measured during training")
    test_split: str = Field("test1", description="the split that every step predicts and is scored on")

    def find(self, finder: Finder, split: str) -> Files:
        return {"statements": finder.files(split, f"{split}.json")}

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Examples by the identifier, "dev-850-0-1".

        inputs   "image": `All` of the keys of the left and the right picture, "dev-850-0-img0" and "-img1"; "statement"
        labels   "truth": bool; absent where the file has no label
        facts    group: the identifier without its pair; all examples of one sentence share it
        """
        for _, row in data.rows(split, "statements", Statement, unique="identifier"):
            yield row.example() if row.sentence else "statement{s} without a text"

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        return {"truth": LABELS}


class PairAccuracy(Accuracy):
    """NLVR2's accuracy and consistency, in percent (Suhr et al., 2019): statements whose predicted truth is right, and
    groups (`facts["group"]`: one sentence about several pairs) whose predictions are all right."""

    type: Literal["pair_accuracy"] = "pair_accuracy"
    judges = frozenset({"label"})
    required_labels = ("truth",)

    @classmethod
    def result_files(cls):
        return PairResults()

    def is_right(self, prediction: Prediction, example: Example) -> bool:
        label = prediction_value(prediction.value, "label", example.id)
        return truth_of(label) == truth_of(example.labels["truth"])

    def columns(self, right: Column, examples: Sequence[Example]) -> dict[str, Column]:
        if not any("group" in example.facts for example in examples):
            return {"accuracy": right}
        consistency: list[float | None] = [None] * len(examples)  # at the first example of every group
        for places in _groups(examples).values():
            if known := [value for place in places if (value := right[place]) is not None]:
                consistency[places[0]] = min(known)
        return {"accuracy": right, "consistency": consistency}

    def references(self, examples: Sequence[Example]) -> Scores | None:
        labelled = [example for example in examples if "truth" in example.labels]
        if not labelled:
            return None
        values = {"chance_accuracy": 50.0}
        if any("group" in example.facts for example in examples):
            values["chance_consistency"] = 100 * fmean(0.5 ** len(places) for places in _groups(labelled).values())
        return Scores(values, notes=("chance: the expected score of a coin toss",))


def _groups(examples: Sequence[Example]) -> dict[str, list[int]]:
    """The positions of the examples of every group; an example without a group is a group by itself."""
    groups: dict[str, list[int]] = defaultdict(list)
    for place, example in enumerate(examples):
        groups[str(example.facts.get("group", example.id))].append(place)
    return groups


class PairResults(ResultFiles):
    """Lines of `identifier,True`, as NLVR2's evaluation reads them."""

    name = "nlvr2"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for number, cells in rows(path):
            identifier, label = (*map(str.strip, cells), "")[:2]
            if (truth := truth_of(label)) is None:
                raise DataError(f"{path}:{number}: a line must be IDENTIFIER,True or IDENTIFIER,False")
            if identifier in values:
                raise DataError(f"{path}:{number}: duplicate id '{identifier:.60}'")
            values[identifier] = {"label": LABELS[truth]}
        return values

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        lines = []
        for example in examples:
            truth = truth_of(prediction_value(values.get(example.id), "label", example.id))
            if truth is None:
                raise DataError(f"example '{example.id}': the prediction must be True or False")
            lines.append(f"{example.id},{LABELS[truth]}\n")
        return "".join(lines)
