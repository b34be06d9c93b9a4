"""Features in TSV files: reads those of bottom-up-attention (Anderson et al., 2018) and LXMERT. A line per
image, base64.

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
from .published_features import decode, existing_path, names_of, read_class_names, relative_boxes, single_classes

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
FLOATS = "<f4"
LONGEST_LINE = 1 << 28


class TsvFile(Extractor):
    """Reads a TSV file. A damaged line is reported as a failed image and reading continues; a truncated file raises
    DataError with file and line."""

    def __init__(self, config: BottomUpTsv) -> None:
        self.names = read_class_names(config)
        self.fingerprint = {"extractor": "bottom_up_tsv", "model": config.model}

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        path = existing_path(source, "file")
        for number, line in lines(path):
            columns = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").split(b"\t")
            if not line.strip() or columns[-1] == b"features":  # some files have a header
                continue
            key = image_key(columns[0].decode(errors="replace"))
            if key in skip:
                continue
            try:
                yield self._build_record(key, columns, f"{path}:{number}")
            except ValueError as error:
                yield FailedImage(key, f"{path}:{number}: {error}")

    def _build_record(self, key: str, columns: list[bytes], place: str) -> Record:
        if len(columns) not in COLUMNS:
            raise ValueError(f"has {len(columns)} columns; expected 6 ({', '.join(COLUMNS[6])}), or LXMERT's 10")
        values = dict(zip(COLUMNS[len(columns)], columns, strict=True))
        try:
            width, height = float(values["image_w"]), float(values["image_h"])
            count = int(values["num_boxes"])
        except ValueError:
            raise ValueError("image_w, image_h and num_boxes must be numbers") from None
        if count < 0:
            raise ValueError(f"num_boxes is {count}; it must not be negative")
        boxes, features = decode(values["boxes"], FLOATS, "boxes"), decode(values["features"], FLOATS, "features")
        if boxes.size != 4 * count:
            raise ValueError(f"boxes has {boxes.size} numbers; expected {count} x 4")
        if not count or not features.size or features.size % count:
            raise ValueError(f"features has {features.size} numbers, which is not a multiple of {count} boxes")
        scores = decode(values["objects_conf"], FLOATS, "objects_conf") if "objects_conf" in values else None
        classes = decode(values["objects_id"], "<i8", "objects_id") if "objects_id" in values else None
        return Record(
            key,
            features.reshape(count, -1),
            relative_boxes(boxes, width, height),
            names_of(classes, self.names),
            scores,
            single_classes(classes, scores, self.names),
            place,
        )


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a plain or gzipped file. Raises DataError if the file is truncated or damaged."""
    number = 0
    try:
        zipped = path.suffix == ".gz"
        with gzip.open(path, "rb") if zipped else path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise DataError(
                        f"{path}:{number}: longer than {LONGEST_LINE >> 20} MB; give a TSV file of features"
                    )
                yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f"{path}:{number + 1}: the file is truncated or damaged here ({error}); download the file again"
        ) from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from None
