"""The conformance suite of extractors that read pictures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..configs import ExtractorConfig
from ..errors import DataError
from ..parts import Extractor, FailedImage, Picture, Record
from .suite import Suite, expect, expect_json
from .toy import Toy

RECORDS, RECORD = "mmgen.parts.Extractor.records", "mmgen.parts.Record"


class ExtractorSuite(Suite):
    """What feature stores rely on. `config()` returns an `ExtractorConfig` whose source is pictures."""

    def config(self) -> ExtractorConfig:
        return super().config()

    def pictures(self) -> Sequence[Picture]:
        """At least three."""
        return list(Toy().build().pictures())[:3]

    def extractor(self) -> Extractor:
        return self.seeded(self.config().build)

    def records(
        self, pictures: Sequence[Picture], skip: frozenset[str] = frozenset()
    ) -> dict[str, Record | FailedImage]:
        found = list(self.extractor().records(iter(pictures), skip))
        keys = [record.key for record in found]
        expect(len(set(keys)) == len(keys), "an image has more than one record", RECORDS)
        return dict(zip(keys, found, strict=True))

    def test_one_record_an_image(self) -> None:
        pictures = self.pictures()
        found = self.records(pictures)
        expect(
            found.keys() == {picture.key for picture in pictures},
            f"{len(pictures)} images give records of {sorted(found)}",
            RECORDS,
        )
        widths = set()
        for key, record in found.items():
            expect(isinstance(record, Record), f"a good picture is called broken: {record}", RECORDS)
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
        pictures = self.pictures()
        found = self.records(pictures, frozenset({pictures[0].key}))
        expect(
            pictures[0].key not in found and len(found) == len(pictures) - 1,
            "an image named in `skip` is extracted again",
            RECORDS,
        )

    def test_a_broken_picture_stops_nothing(self) -> None:
        pictures = self.pictures()
        broken = Picture("broken", partial(_fail, "broken.jpg"))
        try:
            found = self.records([pictures[0], broken, *pictures[1:]])
        except DataError as error:
            raise AssertionError(
                f"a picture that cannot be opened stops the others ({error}); yield Broken(key, reason). Read: "
                f"{RECORDS}"
            ) from None
        expect(
            isinstance(found.get("broken"), FailedImage),
            "a picture that cannot be opened must give a Broken(key, reason)",
            RECORDS,
        )
        expect(len(found) == len(pictures) + 1, "after a picture that cannot be opened, others are lost", RECORDS)

    def test_the_batch_changes_nothing(self) -> None:
        pictures = self.pictures()
        together, alone = self.records(pictures), self.records(pictures[:1])
        key = pictures[0].key
        same = together[key].features.shape == alone[key].features.shape and np.allclose(
            together[key].features, alone[key].features, atol=1e-3
        )
        expect(same, "an image has other features when others are extracted with it", RECORDS)

    def test_fingerprint(self) -> None:
        fingerprint = dict(self.extractor().fingerprint)
        expect_json(fingerprint, "the fingerprint", "mmgen.parts.Extractor")
        expect(
            fingerprint and fingerprint == dict(self.extractor().fingerprint),
            "the fingerprint is empty, or another one the second time",
            "mmgen.parts.Extractor",
        )


def _fail(name: str) -> Any:
    raise DataError(f"{name}: not an image that can be read")
