"""Reads features in TSV files of bottom-up-attention (Anderson et al., 2018) and LXMERT: a line per image, base64.

image_id  image_w  image_h  num_boxes  boxes  features
img_id  img_h  img_w  objects_id  objects_conf  attrs_id  attrs_conf  num_boxes  boxes  features
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from mmgen.errors import DataError
from mmgen.parts import Record

from .published_features import PublishedReader, decode, names_of, relative_boxes, single_classes

PLAIN = "image_id image_w image_h num_boxes boxes features".split()
LXMERT = "image_id image_h image_w objects_id objects_conf attrs_id attrs_conf num_boxes boxes features".split()
COLUMNS = {len(names): names for names in (PLAIN, LXMERT)}
FLOATS = "<f4"
LONGEST_LINE = 1 << 28


class TsvFile(PublishedReader):
    """Reads a TSV file. A truncated file raises DataError with file and line."""

    def images(self, path: Path) -> Iterator[tuple[str, str, Callable[[str], Record]]]:
        for number, line in lines(path):
            columns = line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n").split(b"\t")
            if line.strip() and columns[-1] != b"features":  # some files have a header
                yield columns[0].decode(errors="replace"), f"{path}:{number}", partial(self._read, columns)

    def _read(self, columns: Sequence[bytes], key: str) -> Record:
        if len(columns) not in COLUMNS:
            raise ValueError(f"has {len(columns)} columns; expected 6 ({', '.join(PLAIN)}), or LXMERT's 10")
        values = dict(zip(COLUMNS[len(columns)], columns, strict=True))
        try:
            width, height = float(values["image_w"]), float(values["image_h"])
            count = int(values["num_boxes"])
        except ValueError:
            raise ValueError("image_w, image_h and num_boxes must be numbers") from None
        boxes, features = decode(values["boxes"], FLOATS, "boxes"), decode(values["features"], FLOATS, "features")
        if count < 1 or boxes.size != 4 * count or not features.size or features.size % count:
            raise ValueError(
                f"boxes has {boxes.size} and features {features.size} numbers, which does not fit num_boxes, {count}"
            )
        scores, classes = (
            decode(values[name], numbers, name) if name in values else None
            for name, numbers in (("objects_conf", FLOATS), ("objects_id", "<i8"))
        )
        return Record(
            key,
            features.reshape(count, -1),
            relative_boxes(boxes, width, height),
            names_of(classes, self.names),
            scores,
            single_classes(classes, scores, self.names),
        )


def lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Numbered lines of a plain or gzipped file. Raises DataError if the file is truncated or damaged."""
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise DataError(
                        f"{path}:{number}: longer than {LONGEST_LINE >> 20} MB; give a TSV file of features"
                    )
                yield number, line
    except (EOFError, zlib.error, OSError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(
            f"{path}:{number + 1}: cannot be read, or is truncated ({reason}); get the file again"
        ) from None
