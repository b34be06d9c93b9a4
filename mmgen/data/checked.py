"""Checks of what parts return: examples, reads, texts, predictions and scores. A mistake raises PluginError, whose one
line names the part. Runs and the suites of `mmgen.testing` call the same checks. (What a model asks of segments is in
`mmgen.sequence`, of losses in `mmgen.objectives`.)"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeVar, cast

from ..configs import DatasetConfig
from ..errors import MmgenError, PluginError
from ..objectives import Generator, Objective, TargetReader
from ..parts import Embedder, Metric, Reader, Record
from ..recipe.tables import GENERATOR
from ..registry import installed
from ..sequence import segment_problem
from ..tensors import All, Example, Generation, Prediction, ResolvedExample, Scores, Targets

Texts = TypeVar("Texts", bound=Sequence[Sequence[Generation]])


@dataclass(frozen=True)
class Owned:
    """What people are told of a part: `name`, and whose it is. That is looked up when it is told and not before, since
    to find out what is installed takes longer than most calls into parts."""

    name: str
    kind: str
    part: object  # or its config class

    def __str__(self) -> str:
        return f"{self.name} ({installed().owner(self.kind, self.part)})"


@contextlib.contextmanager
def part_calls(part: Owned, method: str) -> Iterator[None]:
    """Around a call into a part. Raises PluginError, which names the part, the method, and the exception's type and
    text, in place of an exception that is no MmgenError."""
    try:
        yield
    except MmgenError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())
        raise PluginError(f"{part}: {method} raises {type(error).__name__}{f': {text}' * bool(text)}") from error


class Examples:
    """Splits of one data set as they are first read: types of targets and inputs, and ids that are there once."""

    def __init__(self, config: DatasetConfig) -> None:
        self.place = Owned("data", "dataset", type(config))
        self.known: dict[str, str] = {}  # id -> its split
        self.read: set[str] = set()

    def check(self, split: str, examples: Sequence[Example]) -> Sequence[Example]:
        """The same examples. Raises PluginError that names the data set and the example."""
        if not (hasattr(examples, "__len__") and hasattr(examples, "__getitem__")):
            kind = type(examples).__name__
            raise PluginError(f"{self.place}: split '{split}' gives a {kind}; it must be a list of examples")
        if split in self.read:
            return examples
        for example in examples:
            wrong = example_problem(example)
            if not wrong and self.known.setdefault(example.id, split) != split:
                wrong = f"its id is in '{self.known[example.id]}' too; put the split's name into it"
            if wrong:
                raise self._error(split, example, wrong)
        seen: set[str] = set()
        for example in examples:
            if example.id in seen:
                raise self._error(split, example, "duplicate id; ids must be unique because output files use them")
            seen.add(example.id)
        self.read.add(split)
        return examples

    def calls(self, split: str) -> contextlib.AbstractContextManager[None]:
        """Around what reads a split: errors of the data set's own name it."""
        return part_calls(self.place, f"split('{split}')")

    def _error(self, split: str, example: Example, wrong: str) -> PluginError:
        return PluginError(f"{self.place}: example '{getattr(example, 'id', example)}' of '{split}': {wrong}")


def example_problem(example: Example) -> str:
    """What is wrong with the types of an example; empty when nothing is."""
    if not isinstance(example, Example):
        return "is no mmgen.tensors.Example"
    if not isinstance(example.id, str):
        return f"its id is {example.id!r:.60}; ids are texts"
    if not isinstance(example.targets, tuple) or not all(isinstance(text, str) for text in example.targets):
        return f"targets are {example.targets!r:.60}, not a tuple of texts; write (text,), with its comma"
    if not isinstance(example.inputs, Mapping):
        return f"its inputs are {example.inputs!r:.60}; they are a dict"
    for field, value in example.inputs.items():
        if isinstance(value, list):
            return f"the alternatives of '{field}' are a list; write a tuple"
        keys = value if isinstance(value, tuple) else (value,)
        if not isinstance(value, Record | All) and not all(isinstance(one, str) for one in keys):
            return f"'{field}' is {value!r:.60}; inputs are keys, texts, tuples of alternatives, or All of several"
    return ""


def check_texts(texts: Texts, ids: Sequence[str], wanted: int, generator: Generator) -> Texts:
    """What a generator wrote for the examples with these ids: `wanted` texts for each. Raises PluginError."""
    wrong = ""
    if not isinstance(texts, Sequence) or not all(isinstance(some, Sequence) for some in texts):
        texts, wrong = cast(Texts, []), f"{texts!r:.60}; it must be a list of texts for each example"
    elif len(texts) != len(ids):
        wrong = f"{len(texts)} lists of texts for {len(ids)} examples"
    for id_, some in zip(ids, texts, strict=False):
        if len(some) != wanted:
            wrong = wrong or f"{len(some)} texts for '{id_}'; num_return_sequences is {wanted}"
        for text in some:
            if not isinstance(text, Generation):
                wrong = wrong or f"{text!r:.60} for '{id_}'; it must be a mmgen.tensors.Generation"
            elif text.id != id_:
                wrong = wrong or f"a text with the id '{text.id}' for '{id_}'"
            elif not _finite(text.score):
                wrong = wrong or f"a text for '{id_}' whose score is {text.score!r:.60}; it is a mean log-probability"
    if wrong:
        raise PluginError(f"{Owned('generator', 'generator', generator)}: generate gives {wrong}")
    return texts


def check_targets(targets: Targets, name: str, reader: TargetReader, asks: bool) -> Targets:
    """What an objective's reader gives for a batch: `Targets` with a count for each of its losses, but where it only
    asks. A loss without a count would be left out without a word. Raises PluginError."""
    wrong = ""
    if not isinstance(targets, Targets):
        wrong = f"gives {targets!r:.60}; it must be a mmgen.tensors.Targets"
    elif not asks and set(targets.counts) != set(reader.losses):
        counted, losses = (", ".join(map(repr, names)) for names in (targets.counts, reader.losses))
        wrong = f"counts {counted or 'nothing'}; its losses are {losses}"
    elif bad := [loss for loss, count in targets.counts.items() if not isinstance(count, Real) or not count >= 0]:
        wrong = f"counts {targets.counts[bad[0]]!r:.60} for '{bad[0]}'; a count is a number, 0 or more"
    if wrong:
        kind = "generator" if name == GENERATOR else "objective"
        raise PluginError(f"{Owned(name, kind, reader)}: {'ask' if asks else 'collate'} {wrong}")
    return targets


def check_predictions(
    made: Sequence[Prediction], ids: Sequence[str], name: str, objective: Objective
) -> list[Prediction]:
    """What an objective predicted for the examples with these ids. Raises PluginError."""
    place = Owned(name, "objective", objective)
    if not isinstance(made, Sequence) or len(made) != len(ids):
        raise PluginError(
            f"{place}: predict gives {len(made) if isinstance(made, Sequence) else made!r:.60} for {len(ids)} examples"
        )
    for one, id_ in zip(made, ids, strict=True):
        if not isinstance(one, Prediction):
            raise PluginError(f"{place}: predict gives {one!r:.60} for '{id_}'; it must be a mmgen.tensors.Prediction")
        if one.id != id_:
            raise PluginError(f"{place}: predict gives a prediction with the id '{one.id}' for '{id_}'")
        if not _finite(one.score):
            raise PluginError(
                f"{place}: predict gives the score {one.score!r:.60} for '{id_}'; it is how sure the prediction is"
            )
        try:
            json.dumps(one.value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise PluginError(f"{place}: predict gives a value for '{id_}' that is no JSON: {error}") from None
    return list(made)


def score_with(
    name: str, metric: Metric, made: Sequence[Generation] | Sequence[Prediction], examples: Sequence[Example]
) -> Scores:
    """What a metric says of a prediction for each of these examples. Raises PluginError."""
    place = Owned(f"metrics.{name}", "metric", metric)
    with part_calls(place, "score"):
        scores = metric.score(made, examples)
    if wrong := _scores_problem(scores, len(examples), "score"):
        raise PluginError(f"{place}: {wrong}")
    return scores


def references_of(name: str, metric: Metric, examples: Sequence[Example]) -> Scores | None:
    """What a metric gives to the references of these examples, and to chance; None where it says neither. Raises
    PluginError."""
    place = Owned(f"metrics.{name}", "metric", metric)
    with part_calls(place, "references"):
        scores = metric.references(examples)
    if scores is not None and (wrong := _scores_problem(scores, len(examples), "references")):
        raise PluginError(f"{place}: {wrong}")
    return scores


def _scores_problem(scores: Scores, count: int, method: str) -> str:
    if not isinstance(scores, Scores):
        none = ", or None" if method == "references" else ""
        return f"{method} gives {scores!r:.60}; it must be a mmgen.tensors.Scores{none}"
    for field in ("values", "per_example"):
        if not isinstance(getattr(scores, field), Mapping):
            return f"{method} gives {field} {getattr(scores, field)!r:.60}; they must be a dict"
    if not isinstance(scores.notes, tuple | list) or not all(isinstance(note, str) for note in scores.notes):
        return f"{method} gives notes {scores.notes!r:.60}; they must be a tuple of texts, ('...',)"
    for name in (*scores.values, *scores.per_example):
        if not isinstance(name, str):
            return f"{method} gives a score the name {name!r:.60}; names are texts"
    for name, value in scores.values.items():
        if value is not None and not _finite(value):
            return f"{name} is {value!r:.60}; values are finite numbers, or None with a note"
    for name, values in scores.per_example.items():
        if not isinstance(values, Collection) or isinstance(values, str | Mapping):
            return f"{name} has {values!r:.60} for its examples; it must be a list of numbers"
        if len(values) != count:
            return f"{name} has {len(values)} values for {count} examples"
        if (bad := next((value for value in values if value is not None and not _finite(value)), None)) is not None:
            return f"{name} of an example is {bad!r:.60}; values are finite numbers, or None"
    return ""


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def check_reads(name: str, embedder: Embedder, examples: Sequence[ResolvedExample], width: int) -> None:
    """A first look at an input, before anything is trained: reading twice gives the same, `forward` gives a segment of
    the backbone's width, and the slots of an example are as many alone as in a batch. Raises PluginError; DataError
    where an example cannot be read."""
    reader, place = embedder.reader, Owned(f"input '{name}'", "embedder", embedder)
    with part_calls(place, "read"):
        items = [reader.read(example) for example in examples]
        again = [reader.read(example) for example in examples]
    for example, item, repeated in zip(examples, items, again, strict=True):
        with part_calls(place, "collate"):
            changed = _changed(reader, item, repeated)
        if changed:
            raise PluginError(
                f"{place}: reads differ: example '{example.id}' read twice gives other {changed}; a read must depend "
                "on the example alone, or results depend on the number of loader workers"
            )
    together = _slots(embedder, items, place, width)
    for example, item, count in zip(examples, items, together, strict=True):
        (alone,) = _slots(embedder, [item], place, width)
        if alone != count:
            raise PluginError(
                f"{place}: example '{example.id}' has {alone} slots alone and {count} in a batch; mask the padding"
            )


def _changed(reader: Reader, first: Any, second: Any) -> str:
    """Names of the tensors in which two reads of an example differ."""
    before, after = reader.collate([first]), reader.collate([second])
    return ", ".join(
        name for name in before if before[name].shape != after[name].shape or not (before[name] == after[name]).all()
    )


def _slots(embedder: Embedder, items: Sequence[Any], place: Owned, width: int) -> list[int]:
    """Real slots of every row. Raises PluginError where `forward` gives no segment for a backbone of this width."""
    device = next((parameter.device for parameter in embedder.parameters()), None)
    collated = embedder.reader.collate(items)
    segment = embedder(**{name: value if device is None else value.to(device) for name, value in collated.items()})
    if problem := segment_problem(segment, len(items), width):
        raise PluginError(f"{place}: {problem}")
    return cast("list[int]", segment.mask.sum(1).tolist())
