"""Bottom-up-attention's TSV (Anderson et al., 2018), and LXMERT's: a line an image, arrays as base64.

image_id  image_w  image_h  num_boxes  boxes  features
img_id  img_h  img_w  objects_id  objects_conf  attrs_id  attrs_conf  num_boxes  boxes  features
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from mmgen.errors import DataError
from mmgen.files import image_key
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import BottomUpTsv
from .published import class_names, decoded, named, needs_file, relative, surest

COLUMNS = {
    6: ("image_id", "image_w", "image_h", "num_boxes", "boxes", "features"),
    10: (
        "image_id",
        "image_h",
        "image_w",
        "objects_id",
        "objects_conf",
        "attrs_id",
        "attrs_conf",
        "num_boxes",
        "boxes",
        "features",
    ),
}
LONGEST_LINE = 1 << 28


class TsvFile(Extractor):
    """A damaged line is a broken image and the others go on; a file that breaks off raises DataError with file and
    line."""

    def __init__(self, config: BottomUpTsv) -> None:
        self.names = class_names(config)
        self.fingerprint = {"extractor": "bottom_up_tsv", "model": config.model}

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        path = needs_file(source, "file")
        for number, line in lines(path):
            columns = line.rstrip(b"\r\n").split(b"\t")
            key = image_key(columns[0].decode(errors="replace"))
            if number == 1 and columns[-1] == b"features":  # some files have a header
                continue
            if key in skip:
                continue
            try:
                yield self._record(key, columns)
            except ValueError as error:
                yield FailedImage(key, f"{path}:{number}: {error}")

    def _record(self, key: str, columns: list[bytes]) -> Record:
        if len(columns) not in COLUMNS:
            raise ValueError(f"{len(columns)} columns; there must be 6 ({', '.join(COLUMNS[6])}), or LXMERT's 10")
        values = dict(zip(COLUMNS[len(columns)], columns, strict=True))
        try:
            width, height = float(values["image_w"]), float(values["image_h"])
            count = int(values["num_boxes"])
        except ValueError:
            raise ValueError("image_w, image_h and num_boxes must be numbers") from None
        if count < 0:
            raise ValueError(f"num_boxes is {count}")
        boxes, features = decoded(values["boxes"], "<f4", "boxes"), decoded(values["features"], "<f4", "features")
        if boxes.size != 4 * count:
            raise ValueError(f"boxes hold {boxes.size} numbers, not {count} x 4")
        if not count or not features.size or features.size % count:
            raise ValueError(f"features hold {features.size} numbers, which cannot be shared out over {count} boxes")
        scores = decoded(values["objects_conf"], "<f4", "objects_conf") if "objects_conf" in values else None
        classes = decoded(values["objects_id"], "<i8", "objects_id") if "objects_id" in values else None
        return Record(
            key,
            features.reshape(count, -1),
            relative(boxes, width, height),
            named(classes, self.names),
            scores,
            surest(classes, scores, self.names),
        )


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a plain or gzipped file. Raises DataError where it breaks off."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise DataError(f"{path}:{number}: longer than {LONGEST_LINE >> 20} MB; this is no TSV of features")
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the file breaks off or is damaged here ({error}); get it again"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
