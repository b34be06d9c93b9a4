"""The conformance suite of extractors: those that process pictures and those that read a published file. The contract
is in `mmgen.parts.Extractor` and `mmgen.parts.Record`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from ..configs import ExtractorConfig
from ..errors import DataError
from ..features.writer import checked
from ..parts import Extractor, FailedImage, Picture, Record
from .suite import Suite, assert_json, explained, skip
from .toy import Toy


class ExtractorSuite(Suite[ExtractorConfig]):
    """What feature stores rely on. `config()` returns an `ExtractorConfig`. For an extractor that reads a file, define
    `path()`, a file or folder with at least three images; the tests of pictures are then skipped."""

    def pictures(self) -> Sequence[Picture]:
        """At least three."""
        return list(Toy().build().pictures())[:3]

    def path(self) -> Path:
        """The file of an extractor that reads a file."""
        raise NotImplementedError(f"{type(self).__name__} must define path(), which returns the file to read")

    def extractor(self) -> Extractor:
        return self.seeded(self.config().build)

    def records(
        self, source: Sequence[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> dict[str, Record | FailedImage]:
        records = list(self.extractor().records(source if isinstance(source, Path) else iter(source), skip))
        by_key = {record.key: record for record in records}
        assert len(by_key) == len(records), "an image has more than one record"
        return by_key

    def test_one_record_per_image(self) -> None:
        records = self.records(self._pictures_or_path())
        assert len(records) > 2, f"only {sorted(records)} have records; give at least three images"
        if self._reads_pictures():
            keys = {picture.key for picture in self.pictures()}
            assert records.keys() == keys, f"{len(keys)} images have records only for {sorted(records)}"
        width: int | None = None
        for key, record in records.items():
            assert isinstance(record, Record), f"a readable picture gives a failure: {record}"
            floats = isinstance(record.features, np.ndarray) and record.features.dtype.kind == "f"
            assert floats, f"features of '{key}' are not a float array (R, D)"
            assert len(record.features) > 0, f"features of '{key}' are empty"
            width = self.check_regions(record, width)

    def check_regions(self, record: Record, width: int | None = None) -> int:
        """Checks a record as a feature store does. Returns the width of its features, which must equal `width`. Raises
        DataError if a store could not keep the record."""
        stored = checked(record, "float32")
        assert width in (None, stored.features.shape[1]), f"features of '{record.key}' are not as wide as others"
        if record.boxes is not None and stored.boxes is not None:
            inside = np.allclose(record.boxes, stored.boxes, atol=1e-4)
            assert inside, f"boxes of '{record.key}' are not (x0, y0, x1, y1) relative to the image's size"
        if stored.boxes is not None:
            extended = (stored.boxes[:, :2] < stored.boxes[:, 2:]).all()
            assert extended, f"a box of '{record.key}' has no area"
        return int(stored.features.shape[1])

    def test_existing_keys_are_skipped(self) -> None:
        source = self._pictures_or_path()
        keys = list(self.records(source))
        rest = self.records(source, frozenset(keys[:1]))
        assert sorted(rest) == sorted(keys[1:]), "an image named in `skip` is extracted again"

    def test_a_broken_picture_is_reported(self) -> None:
        if not self._reads_pictures():
            skip("reads a file")
        pictures = self.pictures()
        broken = Picture("broken", partial(_raise_unreadable, "broken.jpg"))
        with explained("a picture that cannot be opened stops the extraction; yield FailedImage(key, reason)"):
            records = self.records([pictures[0], broken, *pictures[1:]])
        failed = isinstance(records.get("broken"), FailedImage)
        assert failed, "a picture that cannot be opened must return a FailedImage(key, reason)"
        assert len(records) == len(pictures) + 1, "a picture that cannot be opened makes others disappear"

    def test_batches_equal_single_pictures(self) -> None:
        if not self._reads_pictures():
            skip("reads a file")
        pictures = self.pictures()
        records = [self.records(some)[pictures[0].key] for some in (pictures, pictures[:1])]
        assert all(isinstance(record, Record) for record in records), f"a readable picture gives a failure: {records}"
        first, second = (record.features for record in records if isinstance(record, Record))
        same = first.shape == second.shape and np.allclose(first, second, atol=1e-3)
        assert same, "the features of an image depend on the other images of the batch"

    def test_fingerprint(self) -> None:
        fingerprint = dict(self.extractor().fingerprint)
        assert_json(fingerprint, "the fingerprint")
        same = fingerprint and fingerprint == dict(self.extractor().fingerprint)
        assert same, "the fingerprint is empty or differs at the second call"

    def test_saved_network_gives_the_same_features(self) -> None:
        extractor = self.extractor()
        if type(extractor).save is Extractor.save:
            skip("has no save(); exports of models leave this extractor out")
        pictures = self.pictures()
        with TemporaryDirectory() as name:
            extractor.save(Path(name))
            loaded = self.config().load(Path(name))
        same = dict(loaded.fingerprint) == dict(extractor.fingerprint)
        assert same, "the fingerprint of the loaded extractor differs from that of the saved extractor"
        for before, after in zip(extractor.records(pictures), loaded.records(pictures), strict=True):
            assert isinstance(before, Record) and isinstance(after, Record), "a readable picture gives a failure"
            equal = np.array_equal(before.features, after.features)
            assert equal, f"the loaded extractor gives other features for '{before.key}'"

    def _reads_pictures(self) -> bool:
        return self.config().source == "pictures"

    def _pictures_or_path(self) -> Sequence[Picture] | Path:
        return self.pictures() if self._reads_pictures() else self.path()


def _raise_unreadable(name: str) -> Any:
    raise DataError(f"{name}: not a readable image")
