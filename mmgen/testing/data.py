"""The conformance suites of data sets, metrics and extractors. The contract is in `mmgen.parts.Dataset`,
`mmgen.examples.Example`; `mmgen.parts.Metric`, `mmgen.examples.Scores`; `mmgen.parts.Extractor`, `mmgen.parts.Record`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from statistics import mode
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from PIL import Image

from ..configs import DatasetConfig, ExtractorConfig, MetricConfig
from ..data.part_checks import check_scores
from ..errors import DataError
from ..examples import All, Example, Generation, Prediction, Scores
from ..features.writer import checked
from ..parts import Dataset, Extractor, FailedImage, Metric, Picture, Record
from .suite import Suite, assert_json, assert_refused, assert_type, explained, skip
from .toy import Toy


class DatasetSuite(Suite[DatasetConfig]):
    """What a run relies on. `config()` returns a `DatasetConfig` of files small enough to be read for every test."""

    def dataset(self) -> Dataset:
        return self.buildable().build()

    def test_splits(self) -> None:
        """They are named once, have examples, differ, and are the same when read or built again."""
        config, dataset, rebuilt = self.config(), self.dataset(), self.dataset()
        names, examples, seen = dataset.splits(), list[Example](), dict[str, str]()
        named = {*names} >= {config.train_split, config.test_split} and len({*names}) == len(names)
        assert named, f"splits() returns {names}; expected all once, with the config's train_split and test_split"
        for name in names:
            split = list(dataset.split(name))
            examples += split
            assert split, f"the split '{name}' has no examples"
            assert split == list(dataset.split(name)) == list(rebuilt.split(name)), (
                f"the split '{name}' has different examples when read or built again; draw from a seed of the config, "
                "and sort the contents of sets and folders"
            )
            for example in split:
                targets = example.targets
                texts = isinstance(targets, tuple) and all(isinstance(text, str) and text.strip() for text in targets)
                assert texts, f"targets of '{example.id}' are {targets!r:.60}; write (text,), and leave empty ones out"
                right = all(value and isinstance(value, str | All | tuple) for value in example.inputs.values())
                assert right, f"'{example.id}': inputs must be keys, texts, tuples of alternatives, or All"
                first = seen.setdefault(repr((sorted(example.inputs.items()), example.targets)), name)
                assert first == name, f"example '{example.id}' of '{name}' is also in '{first}', word for word"
        ids = [example.id for example in examples]
        assert len({*ids}) == len(ids), f"duplicate id '{mode(ids)}'; give every example of all splits its own id"
        unknown = {*dataset.vocabularies()}.union(*(example.labels for example in examples)) - {*config.labels}
        assert not unknown, (
            f"examples or vocabularies() have the labels {unknown}, but the config's are {config.labels}"
        )

    def test_an_unknown_split(self) -> None:
        assert_refused("a split that does not exist", self.dataset().split, "no-such-split", "no-such-split")

    def test_description(self) -> None:
        description = self.dataset().describe()
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
            for x0, y0, x1, y1 in picture.boxes or ():
                inside = 0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1
                assert inside, f"picture '{picture.key}' has a box that is not relative (x0, y0, x1, y1)"


class MetricSuite(Suite[MetricConfig]):
    """What scoring relies on. `config()` returns a `MetricConfig`; override `examples()` to score other examples."""

    def examples(self) -> Sequence[Example]:
        """At least three examples, with targets where texts are judged."""
        return Toy().build().split("train")

    def generations(self, examples: Sequence[Example]) -> Sequence[Generation | Prediction]:
        """One text for each example: some references, some references of another example, one empty. For a metric that
        does not score texts, return `Prediction`s of its kind, some right and some wrong."""
        texts = [
            example.targets[0] if number % 2 else examples[number - 1].targets[-1]
            for number, example in enumerate(examples)
        ]
        return [Generation(e.id, text, (), 0.0) for e, text in zip(examples, ["", *texts[1:]], strict=True)]

    def metric(self) -> Metric:
        return self.buildable().build()

    def score(self, predictions: Sequence[Any], examples: Sequence[Example]) -> Scores:
        """Scores, checked as a run checks them."""
        scores = check_scores("suite", self.metric().score(predictions, examples), examples)
        assert_json([dict(scores.values), {name: [*values] for name, values in scores.per_example.items()}], "scores")
        return scores

    def test_scores(self) -> None:
        """They are the same every time, and in any order."""
        examples = self.examples()
        predictions = self.generations(examples)
        scores = self.score(predictions, examples)
        values = scores.values
        assert {*scores.per_example} <= {*values} != set(), "score must return values, and a total of each per example"
        assert scores == self.score(predictions, examples), "the same texts get different scores at the second call"
        turned = self.score(predictions[::-1], examples[::-1]).values
        for name, value in values.items():
            same = value == turned[name] or math.isclose(value or 0, turned[name] or 0, rel_tol=1e-6, abs_tol=1e-9)
            assert same, f"{name} is {value} in one order and {turned[name]} in another; generation i is of example i"
        chances = self.metric().references(examples)
        for name in check_scores("suite", chances, examples).values if chances else ():
            assert name.removeprefix("chance_") in values, f"references() has '{name}', but score does not"

    def test_one_example_and_an_empty_text(self) -> None:
        example = self.examples()[0]
        predictions = [*self.generations(self.examples())[:1]]
        if "text" in self.config().judges:
            predictions += [Generation(example.id, text, (), 0.0) for text in ("", "  \n", "§ ☃ 'x' \"y\"")]
        for prediction in predictions:
            with explained(f"one example with {getattr(prediction, 'value', prediction)!r} cannot be scored"):
                self.score([prediction], [example])


class ExtractorSuite(Suite[ExtractorConfig]):
    """What feature stores rely on. `config()` returns an `ExtractorConfig`. For an extractor that reads a file, define
    `path()`, a file or folder with at least three images; the tests of pictures are then skipped."""

    def pictures(self) -> Sequence[Picture]:
        """At least three."""
        return list(Toy().build().pictures())[:3]

    def path(self) -> Path:
        """The file of an extractor that reads a file."""
        raise NotImplementedError("define path(), which returns the file to read")

    def extractor(self) -> Extractor:
        return self.seeded(self.buildable().build)

    def records(self, source: Any, skip: Iterable[str] = (), extractor: Extractor | None = None) -> dict[str, Any]:
        """Records by key. `source`: pictures or a path."""
        return {record.key: record for record in (extractor or self.extractor()).records(source, frozenset(skip))}

    def test_records(self) -> None:
        """One of each image, as a feature store can keep it."""
        source = self.pictures() if self.config().source == "pictures" else self.path()
        records = self.records(source)
        assert len(records) > 2, f"only {', '.join(records)} have records; give at least three images"
        first = next(iter(records.values()))
        for key, record in records.items():
            assert_type(record, Record, "a readable picture")
            boxes = checked(record, "float32", like=first).boxes
            relative = boxes is None or np.allclose(boxes, record.boxes, atol=1e-4)
            assert relative, f"boxes of '{key}' are not (x0, y0, x1, y1) relative to the image's size"
        rest = self.records(source, [first.key])
        assert rest.keys() == records.keys() - {first.key}, "an image named in `skip` is extracted again"

    def test_pictures(self) -> None:
        """One that is broken stops nothing, and a picture has the same features alone and in a batch."""
        if self.config().source != "pictures":
            skip("reads a file")
        pictures = self.pictures()
        with explained("a picture that cannot be opened stops the extraction; yield FailedImage(key, reason)"):
            records = self.records([pictures[0], Picture("broken", _raise_unreadable), *pictures[1:]])
        failed = isinstance(records.get("broken"), FailedImage) and len(records) == len(pictures) + 1
        assert failed, "a picture that cannot be opened must return a FailedImage(key, reason), and others a Record"
        alone = self.records(pictures[:1])[pictures[0].key].features
        same = np.allclose(records[pictures[0].key].features, alone, atol=1e-3)
        assert same, "the features of an image depend on the other images of the batch"

    def test_fingerprint_and_saved_network(self) -> None:
        extractor = self.extractor()
        fingerprint = extractor.fingerprint
        assert_json(dict(fingerprint), "the fingerprint")
        same = fingerprint and fingerprint == self.extractor().fingerprint
        assert same, "the fingerprint is empty or differs at the second call"
        if type(extractor).save is Extractor.save:
            skip("has no save(); exports of models leave this extractor out")
        with TemporaryDirectory() as name:
            extractor.save(Path(name))
            loaded = self.config().load(Path(name))
        assert fingerprint == loaded.fingerprint, "the fingerprint of the loaded extractor differs"
        before, after = (self.records(self.pictures(), extractor=some) for some in (extractor, loaded))
        same = all(np.array_equal(record.features, after[key].features) for key, record in before.items())
        assert same, "the loaded extractor gives other features"


def _raise_unreadable() -> Any:
    raise DataError("broken.jpg: not a readable image")
