"""The conformance suite of data sets. The contract is in `mmgen.parts.Dataset` and `mmgen.examples.Example`."""

from __future__ import annotations

from itertools import islice
from statistics import mode

from PIL import Image

from ..configs import DatasetConfig
from ..errors import DataError
from ..examples import All, Example
from ..parts import Dataset
from .suite import Suite, assert_json, assert_type


class DatasetSuite(Suite[DatasetConfig]):
    """What a run relies on. `config()` returns a `DatasetConfig` of files small enough to be read for every test."""

    def dataset(self) -> Dataset:
        return self.buildable().build()

    def test_splits(self) -> None:
        """They are named once, have examples, differ, and are the same when read or built again."""
        config, dataset, rebuilt = self.config(), self.dataset(), self.dataset()
        names = dataset.splits()
        named = {*names} >= {config.train_split, config.test_split} and len({*names}) == len(names)
        assert named, f"splits() returns {names}; expected all once, with the config's train_split and test_split"
        examples, seen = list[Example](), dict[str, str]()
        for name in names:
            split = list(dataset.split(name))
            examples += split
            assert split, f"the split '{name}' has no examples"
            assert split == list(dataset.split(name)) == list(rebuilt.split(name)), (
                f"the split '{name}' has different examples when read or built again; draw from a seed of the config, "
                "and sort the contents of sets and folders"
            )
            for example in split:
                assert not (problem := example_problem(example)), f"example '{example.id}' of '{name}': {problem}"
                first = seen.setdefault(repr((sorted(example.inputs.items()), example.targets)), name)
                assert first == name, f"example '{example.id}' of '{name}' is also in '{first}', word for word"
        ids = [example.id for example in examples]
        assert len({*ids}) == len(ids), f"duplicate id '{mode(ids)}'; give every example of all splits its own id"
        bare = [example.id for example in examples if not example.targets and not example.labels]
        assert not bare or not any(example.targets for example in examples), (
            f"example '{bare[0]}' has neither targets nor labels, but others have targets; leave it out"
        )
        vocabularies, labels = dataset.vocabularies(), {*config.labels}
        unknown = {*vocabularies}.union(*(example.labels for example in examples)) - labels
        assert not unknown, (
            f"examples or vocabularies() have the labels {unknown}, but the config's are {labels or 'none'}"
        )
        for label, values in vocabularies.items():
            right = isinstance(values, tuple) and values and len({*map(str, values)}) == len(values)
            assert right, f"vocabularies() returns {values!r:.60} for '{label}'; expected a tuple of different texts"

    def test_an_unknown_split(self) -> None:
        try:
            self.dataset().split("no-such-split")
        except DataError as error:
            if "no-such-split" in str(error):
                return
        raise AssertionError("a split that does not exist must raise a DataError that names it")

    def test_description(self) -> None:
        description = self.dataset().describe()
        assert_json(description, "what describe() returns")
        assert description.get("licence") and description.get("source"), "describe() has no 'licence' or no 'source'"

    def test_pictures(self) -> None:
        dataset = self.dataset()
        try:
            keys = [picture.key for picture in dataset.pictures()]
        except DataError:
            return  # the data set has no pictures
        assert len({*keys}) == len(keys), "pictures() returns a picture more than once"
        examples = [example for name in dataset.splits() for example in dataset.split(name)]
        unread = {*keys}.difference(*(example.shown(field) for example in examples for field in example.inputs))
        assert not unread, f"no example has the pictures {unread} among its inputs"
        for picture in islice(dataset.pictures(), 3):
            assert_type(picture.load(), Image.Image, "Picture.load")
            for box in picture.boxes or ():
                x0, y0, x1, y1 = box
                inside = 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1
                assert inside, f"picture '{picture.key}' has the box {box}; boxes are relative (x0, y0, x1, y1)"


def example_problem(example: Example) -> str:
    """What is wrong with the types of an example; empty if they are right."""
    if not isinstance(example.id, str) or not example.id or not example.inputs:
        return "it needs an id, a text, and inputs"
    if not isinstance(example.targets, tuple) or not all(isinstance(t, str) and t.strip() for t in example.targets):
        return f"targets are {example.targets!r:.60}, not a tuple of texts; write (text,), and leave empty ones out"
    for field, value in example.inputs.items():
        shown = value.values if isinstance(value, All) else value if isinstance(value, tuple) else (value,)
        kinds = (str, tuple) if isinstance(value, All) else str  # All may contain positions in a text, as tuples
        if not shown or not isinstance(shown, tuple) or not all(isinstance(single, kinds) for single in shown):
            return f"'{field}' is {value!r:.60}; inputs must be keys, texts, tuples of alternatives, or All"
    return ""
