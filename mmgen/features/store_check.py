"""Check a feature store: what its parts must be for it to be read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import DataError
from .stored_classes import LONGEST

if TYPE_CHECKING:
    from ..parts import Record
    from .classes import Classes


def check(
    record: Record, dtype: str, width: int | None, classes: tuple[tuple[str, ...], int] | None = None
) -> tuple[Record, bool]:
    """The record as it is stored, and whether boxes were clipped. `classes`: names of those before, and how many of
    them a region has. Raises DataError, naming the image."""
    import numpy as np

    def wrong(what: str) -> DataError:
        return DataError(f"image '{record.key}': {what}")

    if not record.key or "\0" in record.key:
        raise DataError(f"an image has the key {record.key!r}, which names nothing")
    features = np.asarray(record.features)
    if features.dtype.kind not in "fiu":
        raise wrong(f"features are {features.dtype}, which are no real numbers")
    if features.ndim != 2 or not features.shape[1]:
        raise wrong(f"features of shape {features.shape}; they must be (regions, width)")
    if width is not None and features.shape[1] != width:
        raise wrong(f"features are {features.shape[1]} wide, those before are {width}")
    if not np.isfinite(features).all():
        raise wrong("features are not finite (NaN or infinite)")
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(features, dtype=dtype)
    if not np.isfinite(stored).all():
        raise wrong(f"a feature of {np.abs(features).max():.3g} is too large for {dtype}; store float32")
    regions, clipped = len(stored), False
    if record.labels is not None and len(record.labels) != regions:
        raise wrong(f"{len(record.labels)} labels for {regions} regions")
    for values in (record.boxes, record.scores):
        if values is not None and np.asarray(values).dtype.kind not in "fiu":
            raise wrong(f"boxes or scores are {np.asarray(values).dtype}, which are no real numbers")
    boxes, scores = (
        None if values is None else np.asarray(values, np.float32) for values in (record.boxes, record.scores)
    )
    if scores is not None and (scores.shape != (regions,) or not np.isfinite(scores).all()):
        raise wrong(f"scores of shape {scores.shape} for {regions} regions, or not finite")
    if boxes is not None:
        if boxes.shape != (regions, 4) or not np.isfinite(boxes).all():
            raise wrong(f"boxes of shape {boxes.shape} for {regions} regions, or not finite")
        if (boxes[:, :2] > boxes[:, 2:]).any():
            raise wrong("a box ends before it begins; boxes are x0, y0, x1, y1")
        clipped = bool((boxes < -1e-4).any() or (boxes > 1 + 1e-4).any())
        boxes = boxes.clip(0, 1)
    labels = None if record.labels is None else tuple(map(str, record.labels))
    kept = None if record.classes is None else _stored(record.classes)
    if kept is not None and (why := kept.wrong(regions) or _unlike(kept, classes)):
        raise wrong(why)
    return replace(record, features=stored, boxes=boxes, scores=scores, labels=labels, classes=kept), clipped


def _stored(classes: Classes) -> Classes:
    import numpy as np

    ids, probabilities = np.asarray(classes.ids), np.asarray(classes.probabilities)
    small = np.iinfo(np.int32)
    if ids.dtype.kind in "iu" and (not ids.size or small.min <= ids.min() <= ids.max() <= small.max):
        ids = ids.astype(np.int32)  # others are refused as they are
    return replace(classes, ids=ids, probabilities=probabilities.astype(np.float32, copy=False))


def _unlike(classes: Classes, before: tuple[tuple[str, ...], int] | None) -> str:
    """How they differ from those before; of the first, what is wrong with their names."""
    now = classes.names, classes.ids.shape[1]
    if before is None:
        long = next((name for name in now[0] if len(name.encode()) > LONGEST), None)
        return "" if long is None else f"a class is called '{long:.40}...', in more than {LONGEST} bytes"
    if now == before:
        return ""
    if len(now[0]) != len(before[0]) or now[1] != before[1]:
        return f"{now[1]} of {len(now[0])} classes a region, and {before[1]} of {len(before[0])} before"
    return "classes of other names than those before"


def _short(error: Exception) -> str:
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    return str(text).strip().partition("\n")[0]
