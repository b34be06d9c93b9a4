"""The conformance suite of data sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ..configs import DatasetConfig
from ..errors import DataError
from ..parts import Dataset
from ..tensors import All, Example
from .suite import Suite, expect, expect_json

DATASET, EXAMPLE = "mmgen.parts.Dataset", "mmgen.tensors.Example"


class DatasetSuite(Suite[DatasetConfig]):
    """What a run relies on. `config()` returns a `DatasetConfig`, over files small enough to be read for every test."""

    def dataset(self) -> Dataset:
        return self.config().build()

    def examples(self, dataset: Dataset) -> Iterator[tuple[str, Example]]:
        return ((name, example) for name in dataset.splits() for example in dataset.split(name))

    def test_splits(self) -> None:
        config, dataset = self.config(), self.dataset()
        names = dataset.splits()
        expect(len(set(names)) == len(names) > 0, f"splits() must name each split once; it gives {names}", DATASET)
        for key in ("train", "evaluate"):
            expect(
                getattr(config, key) in names,
                f"the config's {key} is '{getattr(config, key)}', and the splits are {', '.join(names)}",
                "mmgen.configs.DatasetConfig",
            )
        for name in names:
            expect(len(dataset.split(name)) > 0, f"the split '{name}' has no examples", DATASET)

    def test_a_split_that_there_is_not(self) -> None:
        dataset = self.dataset()
        try:
            dataset.split("no-such-split")
        except DataError as error:
            expect(
                "no-such-split" in str(error),
                f"the error does not name the split that was asked for: '{error}'",
                DATASET,
            )
            return
        except Exception as error:
            raise AssertionError(
                f"a split that there is not raises {type(error).__name__}; raise a DataError that names it. Read: "
                f"{DATASET}"
            ) from None
        expect(False, "a split that there is not gives examples; raise a DataError", DATASET)

    def test_ids_are_unique(self) -> None:
        seen: dict[str, str] = {}
        for name, example in self.examples(self.dataset()):
            expect(
                isinstance(example.id, str) and example.id,
                f"an id of '{name}' is {example.id!r}; ids are texts",
                EXAMPLE,
            )
            wrong = (
                f"the id '{example.id}' is there twice ('{seen.get(example.id)}' and '{name}'); put the split's "
                "name into it"
            )
            expect(example.id not in seen, wrong, DATASET)
            seen[example.id] = name

    def test_splits_are_disjoint(self) -> None:
        seen: dict[str, str] = {}
        for name, example in self.examples(self.dataset()):
            what = repr((sorted(example.inputs.items()), example.targets))
            expect(
                seen.setdefault(what, name) == name,
                f"example '{example.id}' of '{name}' is in '{seen[what]}' too, word for word",
                DATASET,
            )

    def test_examples_are_keys_and_texts(self) -> None:
        """Where one example has targets, all others have targets or labels. Texts to read alone have neither."""
        dataset = self.dataset()
        some = any(example.targets for _, example in self.examples(dataset))
        for name, example in self.examples(dataset):
            place = f"example '{example.id}' of '{name}'"
            expect(
                isinstance(example.targets, tuple),
                f"{place}: targets are {example.targets!r:.60}, not a tuple of texts; write (text,), with its comma",
                EXAMPLE,
            )
            expect(
                example.targets or example.labels or not some,
                f"{place} has neither targets nor labels, and others have targets; leave it out",
                EXAMPLE,
            )
            expect(
                all(isinstance(text, str) and text.strip() for text in example.targets),
                f"{place} has an empty target; leave it out",
                EXAMPLE,
            )
            expect(example.inputs, f"{place} has no inputs", EXAMPLE)
            self.check_inputs(place, example)

    def check_inputs(self, place: str, example: Example) -> None:
        for field, value in example.inputs.items():
            expect(
                not isinstance(value, list),
                f"{place}: the alternatives of '{field}' are a list; write a tuple",
                EXAMPLE,
            )
            several = value.values if isinstance(value, All) else value if isinstance(value, tuple) else (value,)
            plain = (str, tuple) if isinstance(value, All) else str  # mentions of objects in a text are tuples
            expect(
                several and all(isinstance(one, plain) for one in several),
                f"{place}: input '{field}' is {value!r:.60}; inputs are keys, texts, tuples of alternatives, or All of "
                "several, never tensors",
                EXAMPLE,
            )

    def test_labels(self) -> None:
        config, dataset = self.config(), self.dataset()
        named = set(config.labels)
        for what, labels in (("labels()", dataset.labels()), *self._labels(dataset)):
            expect(
                set(labels) <= named,
                f"{what} has {_some(set(labels) - named)}, and the config's labels are {_some(named) or 'none'}",
                "mmgen.configs.DatasetConfig",
            )
        for label, values in dataset.labels().items():
            good = isinstance(values, tuple) and all(isinstance(one, str) for one in values)
            expect(
                good and len(set(values)) == len(values) > 0,
                f"labels() gives {values!r:.60} for '{label}'; it is a tuple of different texts",
                "mmgen.parts.Dataset.labels",
            )

    def _labels(self, dataset: Dataset) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return ((f"example '{each.id}' of '{name}'", each.labels) for name, each in self.examples(dataset))

    def test_the_same_twice(self) -> None:
        dataset, again = self.dataset(), self.dataset()
        for name in dataset.splits():
            for other, when in ((dataset, "asked for"), (again, "built")):
                same = list(dataset.split(name)) == list(other.split(name))
                expect(
                    same,
                    f"the split '{name}' has other examples the second time it is {when}; draw from a seed of the "
                    "config, and sort what comes from sets and folders",
                    DATASET,
                )

    def test_description(self) -> None:
        told = self.dataset().describe()
        expect_json(told, "what describe() returns", "mmgen.parts.Dataset.describe")
        for key in ("licence", "source"):
            expect(told.get(key), f"describe() does not tell '{key}'", "mmgen.parts.Dataset.describe")

    def test_pictures(self) -> None:
        dataset = self.dataset()
        try:
            keys = [picture.key for picture in dataset.pictures()]
        except DataError:
            return  # it says that it has none
        twice = {key for key in keys if keys.count(key) > 1}
        expect(not twice, f"pictures() gives {_some(twice)} more than once", "mmgen.parts.Dataset.pictures")
        wanted = {
            value
            for _, example in self.examples(dataset)
            for field in example.inputs
            for value in example.shown(field)
            if isinstance(value, str)
        }
        expect(
            set(keys) <= wanted,
            f"no example has the picture {_some(set(keys) - wanted)} among its inputs",
            "mmgen.parts.Dataset.pictures",
        )
        for picture in islice(dataset.pictures(), 3):
            image = picture.load()
            expect(
                getattr(image, "mode", None) == "RGB",
                f"picture '{picture.key}' is no RGB image of PIL",
                "mmgen.parts.Picture",
            )
            for box in picture.boxes or ():
                good = len(box) == 4 and 0 <= box[0] < box[2] <= 1 and 0 <= box[1] < box[3] <= 1
                expect(
                    good,
                    f"picture '{picture.key}' has the box {tuple(box)}; boxes are (x0, y0, x1, y1), relative to the "
                    "image",
                    "mmgen.parts.Picture",
                )


def _some(keys: set[Any]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys, key=str)[:3])
