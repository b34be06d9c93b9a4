"""The conformance suite of extractors: those that look at pictures, and those that read a published file."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..configs import ExtractorConfig
from ..errors import DataError
from ..parts import Extractor, FailedImage, Picture, Record
from .suite import Suite, expect, expect_json, fail, skip
from .toy import Toy

RECORDS, RECORD = "mmgen.parts.Extractor.records", "mmgen.parts.Record"


class ExtractorSuite(Suite[ExtractorConfig]):
    """What feature stores rely on. `config()` returns an `ExtractorConfig`. One whose source is a file gives `path()`,
    a file or folder of three images at least; the tests of pictures are left out then."""

    def pictures(self) -> Sequence[Picture]:
        """At least three."""
        return list(Toy().build().pictures())[:3]

    def path(self) -> Path:
        """What an extractor reads whose source is a file."""
        raise NotImplementedError(f"{type(self).__name__} must define path(), which returns the file to read")

    def extractor(self) -> Extractor:
        return self.seeded(self.config().build)

    def records(
        self, source: Sequence[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> dict[str, Record | FailedImage]:
        found = list(self.extractor().records(source if isinstance(source, Path) else iter(source), skip))
        keys = [record.key for record in found]
        expect(len(set(keys)) == len(keys), "an image has more than one record", RECORDS)
        return dict(zip(keys, found, strict=True))

    def test_one_record_an_image(self) -> None:
        found = self.records(self._source())
        expect(len(found) > 2, f"there are records of {sorted(found)} only; give three images at least", RECORDS)
        if self._reads_pictures():
            pictures = self.pictures()
            expect(
                found.keys() == {picture.key for picture in pictures},
                f"{len(pictures)} images give records of {sorted(found)}",
                RECORDS,
            )
        widths = set()
        for key, record in found.items():
            if not isinstance(record, Record):
                fail(f"a good picture is called broken: {record}", RECORDS)
            features = record.features
            expect(
                isinstance(features, np.ndarray) and features.ndim == 2 and features.dtype.kind == "f",
                f"features of '{key}' are not a float array (R, D)",
                RECORD,
            )
            expect(
                len(features) > 0 and np.isfinite(features).all(),
                f"features of '{key}' are empty, or not finite",
                RECORD,
            )
            widths.add(features.shape[1])
            self.check_regions(record)
        expect(len(widths) == 1, f"images have features of different widths: {sorted(widths)}", RECORD)

    def check_regions(self, record: Record) -> None:
        rows = len(record.features)
        for name in ("boxes", "labels", "scores"):
            values = getattr(record, name)
            expect(
                values is None or len(values) == rows,
                f"'{record.key}' has {rows} features and another number of {name}",
                RECORD,
            )
        if record.boxes is not None:
            boxes = np.asarray(record.boxes)
            inside = boxes.shape == (rows, 4) and (boxes >= -1e-6).all() and (boxes <= 1 + 1e-6).all()
            expect(inside, f"boxes of '{record.key}' are not (x0, y0, x1, y1) relative to the image's size", RECORD)
            expect(
                (boxes[:, :2] < boxes[:, 2:]).all(),
                f"a box of '{record.key}' has no area, or its corners are swapped",
                RECORD,
            )

    def test_what_is_there_is_skipped(self) -> None:
        source = self._source()
        keys = list(self.records(source))
        found = self.records(source, frozenset(keys[:1]))
        expect(
            sorted(found) == sorted(keys[1:]),
            "an image named in `skip` is extracted again",
            RECORDS,
        )

    def test_a_broken_picture_stops_nothing(self) -> None:
        if not self._reads_pictures():
            skip("reads a file")
        pictures = self.pictures()
        broken = Picture("broken", partial(_fail, "broken.jpg"))
        try:
            found = self.records([pictures[0], broken, *pictures[1:]])
        except DataError as error:
            raise AssertionError(
                f"a picture that cannot be opened stops the others ({error}); yield FailedImage(key, reason). Read: "
                f"{RECORDS}"
            ) from None
        expect(
            isinstance(found.get("broken"), FailedImage),
            "a picture that cannot be opened must give a FailedImage(key, reason)",
            RECORDS,
        )
        expect(len(found) == len(pictures) + 1, "after a picture that cannot be opened, others are lost", RECORDS)

    def test_the_batch_changes_nothing(self) -> None:
        if not self._reads_pictures():
            skip("reads a file")
        pictures = self.pictures()
        together, alone = self.records(pictures), self.records(pictures[:1])
        one, other = together[pictures[0].key], alone[pictures[0].key]
        if not isinstance(one, Record) or not isinstance(other, Record):
            fail(f"a good picture is called broken: {one}, {other}", RECORDS)
        same = one.features.shape == other.features.shape and np.allclose(one.features, other.features, atol=1e-3)
        expect(same, "an image has other features when others are extracted with it", RECORDS)

    def test_fingerprint(self) -> None:
        fingerprint = dict(self.extractor().fingerprint)
        expect_json(fingerprint, "the fingerprint", "mmgen.parts.Extractor")
        expect(
            fingerprint and fingerprint == dict(self.extractor().fingerprint),
            "the fingerprint is empty, or another one the second time",
            "mmgen.parts.Extractor",
        )

    def _reads_pictures(self) -> bool:
        return self.config().source == "pictures"

    def _source(self) -> Sequence[Picture] | Path:
        return self.pictures() if self._reads_pictures() else self.path()


def _fail(name: str) -> Any:
    raise DataError(f"{name}: not an image that can be read")
