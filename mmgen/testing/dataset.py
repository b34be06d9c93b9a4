"""The conformance suite of data sets. The contract is in `mmgen.parts.Dataset` and `mmgen.examples.Example`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from PIL import Image

from ..configs import DatasetConfig
from ..errors import DataError
from ..examples import All, Example
from ..parts import Dataset
from .suite import Suite, assert_json, assert_refused


class DatasetSuite(Suite[DatasetConfig]):
    """What a run relies on. `config()` returns a `DatasetConfig` of files small enough to be read for every test."""

    def dataset(self) -> Dataset:
        return self.config().build()

    def examples(self, dataset: Dataset) -> Iterator[tuple[str, Example]]:
        return ((name, example) for name in dataset.splits() for example in dataset.split(name))

    def test_splits(self) -> None:
        config, dataset = self.config(), self.dataset()
        names = dataset.splits()
        assert len(set(names)) == len(names) > 0, f"splits() must name every split once, but returns {names}"
        for key in ("train_split", "test_split"):
            split = getattr(config, key)
            assert split in names, f"the config's {key} is '{split}', but the splits are {', '.join(names)}"
        for name in names:
            assert len(dataset.split(name)) > 0, f"the split '{name}' has no examples"

    def test_an_unknown_split(self) -> None:
        dataset, message = self.dataset(), "a split that does not exist must raise a DataError that names it"
        assert_refused(lambda: dataset.split("no-such-split"), "no-such-split", message)

    def test_splits_are_disjoint(self) -> None:
        seen: dict[str, str] = {}
        for name, example in self.examples(self.dataset()):
            content = repr((sorted(example.inputs.items()), example.targets))
            first = seen.setdefault(content, name)
            assert first == name, f"example '{example.id}' of '{name}' is also in '{first}', word for word"

    def test_examples_are_keys_and_texts(self) -> None:
        """Ids are unique. If one example has targets, all others must have targets or labels."""
        dataset, ids = self.dataset(), set[str]()
        for name, example in self.examples(dataset):
            problem = example_problem(example)
            assert not problem, f"example '{getattr(example, 'id', example)}' of '{name}': {problem}"
            assert example.id not in ids, (
                f"example '{example.id}' of '{name}': duplicate id; give every example of all splits its own id"
            )
            ids.add(example.id)
        has_targets = any(example.targets for _, example in self.examples(dataset))
        for name, example in self.examples(dataset):
            place = f"example '{example.id}' of '{name}'"
            supervised = example.targets or example.labels or not has_targets
            assert supervised, (
                f"{place} has neither targets nor labels, but other examples have targets; leave the example out"
            )
            assert all(text.strip() for text in example.targets), f"{place} has an empty target; leave the target out"
            assert example.id and example.inputs, f"{place} has no id or no inputs"
            empty = [field for field, value in example.inputs.items() if value in ((), All(()))]
            assert not empty, f"{place}: input '{empty[0]}' has no value; leave the input out"

    def test_labels(self) -> None:
        dataset, config_labels = self.dataset(), set(self.config().labels)
        label_sets = [
            (f"example '{example.id}' of '{name}'", example.labels) for name, example in self.examples(dataset)
        ]
        for owner, labels in (("vocabularies()", dataset.vocabularies()), *label_sets):
            message = (
                f"{owner} has {_first_keys(set(labels) - config_labels)}, but the config's labels are "
                f"{_first_keys(config_labels) or 'none'}"
            )
            assert set(labels) <= config_labels, message
        for label, values in dataset.vocabularies().items():
            texts = isinstance(values, tuple) and all(isinstance(value, str) for value in values)
            message = f"vocabularies() returns {values!r:.60} for '{label}'; expected a tuple of different texts"
            assert texts and len(set(values)) == len(values) > 0, message

    def test_is_deterministic(self) -> None:
        dataset, rebuilt = self.dataset(), self.dataset()
        for name in dataset.splits():
            for second, when in ((dataset, "read"), (rebuilt, "built")):
                assert list(dataset.split(name)) == list(second.split(name)), (
                    f"the split '{name}' has different examples when {when} again; draw from a seed of the config, and "
                    f"sort "
                    "the contents of sets and folders"
                )

    def test_description(self) -> None:
        description = self.dataset().describe()
        assert_json(description, "what describe() returns")
        for key in ("licence", "source"):
            assert description.get(key), f"describe() has no '{key}'"

    def test_pictures(self) -> None:
        dataset = self.dataset()
        try:
            keys = [picture.key for picture in dataset.pictures()]
        except DataError:
            return  # the data set has no pictures
        duplicates = {key for key in keys if keys.count(key) > 1}
        assert not duplicates, f"pictures() returns {_first_keys(duplicates)} more than once"
        examples = [example for _, example in self.examples(dataset)]
        read = {value for example in examples for field in example.inputs for value in example.shown(field)}
        unread = set(keys) - read
        assert not unread, f"no example has the picture {_first_keys(unread)} among its inputs"
        for picture in islice(dataset.pictures(), 3):
            assert isinstance(picture.load(), Image.Image), f"picture '{picture.key}' is not an image of PIL"
            for box in picture.boxes or ():
                inside = len(box) == 4 and 0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1
                assert inside, (
                    f"picture '{picture.key}' has the box {tuple(box)}; boxes are (x0, y0, x1, y1), relative to the "
                    "image"
                )


def example_problem(example: Example) -> str:
    """What is wrong with the types of an example; empty if they are right."""
    if not isinstance(example, Example):
        return "is not a mmgen.examples.Example"
    if not isinstance(example.id, str):
        return f"the id is {example.id!r:.60}; ids must be texts"
    if not isinstance(example.targets, tuple) or not all(isinstance(text, str) for text in example.targets):
        return f"targets are {example.targets!r:.60}, not a tuple of texts; write (text,) with the comma"
    if not isinstance(example.inputs, Mapping):
        return f"inputs are {example.inputs!r:.60}; inputs must be a dict"
    for field, value in example.inputs.items():
        if isinstance(value, list):
            return f"the alternatives of '{field}' are a list; write a tuple"
        shown = value.values if isinstance(value, All) else value if isinstance(value, tuple) else (value,)
        kinds = (str, tuple) if isinstance(value, All) else str  # All may contain positions in a text, as tuples
        if not isinstance(shown, tuple) or not all(isinstance(single, kinds) for single in shown):
            return f"'{field}' is {value!r:.60}; inputs must be keys, texts, tuples of alternatives, or All"
    return ""


def _first_keys(keys: set[Any]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys, key=str)[:3])
