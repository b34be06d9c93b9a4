"""The conformance suite of extractors: those that process pictures and those that read a published file. The contract
is in `mmgen.parts.Extractor` and `mmgen.parts.Record`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..configs import ExtractorConfig
from ..errors import DataError
from ..features.writer import checked
from ..parts import Extractor, FailedImage, Picture, Record
from .suite import Suite, assert_json, assert_type, explained, skip
from .toy import Toy


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
        records = [*(extractor or self.extractor()).records(source, frozenset(skip))]
        by_key = {record.key: record for record in records}
        assert len(by_key) == len(records), "an image has more than one record"
        return by_key

    def test_records(self) -> None:
        """One of each image, as a feature store can keep it."""
        reads_file = self.config().source != "pictures"
        source = self.path() if reads_file else self.pictures()
        records = self.records(source)
        complete = len(records) > 2 and (reads_file or records.keys() == {picture.key for picture in self.pictures()})
        assert complete, f"only {', '.join(records)} have records; give at least three images"
        first = next(iter(records.values()))
        for key, record in records.items():
            assert_type(record, Record, "a readable picture")
            stored = checked(record, "float32", like=first)
            assert len(stored.features), f"features of '{key}' are empty"
            if (boxes := stored.boxes) is not None:
                relative = np.allclose(boxes, record.boxes, atol=1e-4) and (boxes[:, :2] < boxes[:, 2:]).all()
                assert relative, (
                    f"boxes of '{key}' are not (x0, y0, x1, y1) relative to the image's size, or have no area"
                )
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
