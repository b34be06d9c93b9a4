"""Check the records that are written to a feature store: shapes, finite numbers, boxes (clipped), class names."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import DataError
from .stored_classes import MAX_NAME_BYTES

if TYPE_CHECKING:
    from ..parts import Record
    from .classes import Classes


class UnlikeEarlier(DataError):
    """Features of another width, or with other classes, than those of earlier images: these or those are wrong."""


def check(
    record: Record, dtype: str, width: int | None, classes: tuple[tuple[str, ...], int] | None = None
) -> tuple[Record, bool]:
    """The record as it is stored, and whether boxes were clipped. `classes`: class names of earlier records, and the
    number of classes per region. Raises DataError, with the key of the image."""
    import numpy as np

    def error(problem: str) -> DataError:
        return DataError(f"image '{record.key}': {problem}")

    if not record.key or "\0" in record.key or not _is_unicode(record.key):
        raise DataError(
            f"image key {record.key!r} must be a non-empty string without null characters and lone surrogates"
        )
    features = np.asarray(record.features)
    if features.dtype.kind not in "fiu":
        raise error(f"features must be real numbers, but their dtype is {features.dtype}")
    if features.ndim != 2 or not features.shape[1]:
        raise error(f"features must have shape (regions, width), but got {features.shape}")
    if width is not None and features.shape[1] != width:
        raise UnlikeEarlier(
            f"image '{record.key}': features have width {features.shape[1]}, but those of earlier images have width "
            f"{width}"
        )
    if not np.isfinite(features).all():
        raise error("features are not finite (NaN or infinite)")
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(features, dtype=dtype)
    if not np.isfinite(stored).all():
        raise error(
            f"a feature of {np.abs(features).max():.3g} is too large for {dtype}; store the features as float32"
        )
    regions, clipped = len(stored), False
    if record.region_names is not None and len(record.region_names) != regions:
        raise error(f"got {len(record.region_names)} region names for {regions} regions")
    for values in (record.boxes, record.scores):
        if values is not None and np.asarray(values).dtype.kind not in "fiu":
            raise error(f"boxes and scores must be real numbers, but got {np.asarray(values).dtype}")
    boxes, scores = (
        None if values is None else np.asarray(values, np.float32) for values in (record.boxes, record.scores)
    )
    if scores is not None and (scores.shape != (regions,) or not np.isfinite(scores).all()):
        raise error(f"scores of shape {scores.shape} for {regions} regions; expected a finite number per region")
    if boxes is not None:
        if boxes.shape != (regions, 4) or not np.isfinite(boxes).all():
            raise error(f"boxes of shape {boxes.shape} for {regions} regions; expected four finite numbers per region")
        if (boxes[:, :2] > boxes[:, 2:]).any():
            raise error("a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1")
        clipped = bool((boxes < -1e-4).any() or (boxes > 1 + 1e-4).any())
        boxes = boxes.clip(0, 1)
    region_names = None if record.region_names is None else tuple(map(str, record.region_names))
    if region_names and not _is_unicode("".join(region_names)):
        raise error("a region name contains a lone surrogate, which no file can hold; correct the names")
    classes_to_store = None if record.classes is None else _as_stored(record.classes)
    if classes_to_store is not None and (
        problem := classes_to_store.error(regions) or _name_problem(classes_to_store, classes is None)
    ):
        raise error(problem)
    if classes_to_store is not None and classes is not None and (problem := _class_mismatch(classes_to_store, classes)):
        raise UnlikeEarlier(f"image '{record.key}': {problem}")
    return replace(
        record, features=stored, boxes=boxes, scores=scores, region_names=region_names, classes=classes_to_store
    ), clipped


def _is_unicode(text: str) -> bool:
    """Whether a file can hold a text; lone surrogates come from JSON, and from file names that are not UTF-8."""
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _as_stored(classes: Classes) -> Classes:
    import numpy as np

    ids, probabilities = np.asarray(classes.ids), np.asarray(classes.probabilities)
    small = np.iinfo(np.int32)
    if ids.dtype.kind in "iu" and (not ids.size or small.min <= ids.min() <= ids.max() <= small.max):
        ids = ids.astype(np.int32)  # `Classes.error` refuses all other ids
    return replace(classes, ids=ids, probabilities=probabilities.astype(np.float32, copy=False))


def _name_problem(classes: Classes, first: bool) -> str:
    """What is wrong with the class names of the first record with classes; "" for later ones, which have the same."""
    if first and not _is_unicode("".join(classes.names)):
        return "a class name contains a lone surrogate, which no file can hold; correct the names"
    long = next((name for name in classes.names if first and len(name.encode()) > MAX_NAME_BYTES), None)
    return "" if long is None else f"class name '{long:.40}...' is longer than {MAX_NAME_BYTES} bytes"


def _class_mismatch(classes: Classes, before: tuple[tuple[str, ...], int]) -> str:
    """How classes differ from those of earlier records."""
    now = classes.names, classes.ids.shape[1]
    if now == before:
        return ""
    if len(now[0]) != len(before[0]) or now[1] != before[1]:
        return f"{now[1]} of {len(now[0])} classes per region, but earlier images have {before[1]} of {len(before[0])}"
    return "class names differ from those of earlier images"
