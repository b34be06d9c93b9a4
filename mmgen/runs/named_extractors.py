"""The extractor that a recipe names beside a file of features, compared with the file before anything is trained."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
from collections.abc import Collection, Iterator, Mapping
from functools import partial

import numpy as np
from PIL import Image

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..errors import DataError, MmgenError
from ..features.fingerprints import difference, in_words, is_imported
from ..features.multi_file import MultiFileStore
from ..features.statistics import FeatureRange
from ..features.store import FeatureStore
from ..features.stores import open_store
from ..parts import Extractor, Picture, Record
from ..recipe.tables import Recipe

COMPARED = 3  # pictures of the data
SAME_BOX = 0.02  # largest difference of a coordinate
LEAST_CORRELATION = 0.8
NO_BOXES = "the data have no pictures with boxes of the file; make sure that this extractor made the features"
log = logging.getLogger("mmgen")


def without_extractor(inputs: Mapping[str, EmbedderConfig]) -> Iterator[str]:
    """A line for every input whose file of features comes without an extractor: the run will refuse other pictures."""
    for name, config in inputs.items():
        if isinstance(config, FeaturesConfig) and config.features is not None and not _reads_pictures(config):
            with contextlib.suppress(MmgenError):  # a file that cannot be read is reported when it is
                made_by = in_words(open_store(config.features).fingerprint)
                yield (
                    f"{name}: the features in {config.features} (of {made_by}) have no extractor, so the trained model "
                    "will answer about the pictures of this file and refuse all others; to ask about others, add "
                    f"[inputs.{name}.extractor] with the network that made the features"
                )


def extractor_errors(recipe: Recipe, datasets: Datasets | None = None) -> Iterator[DataError]:
    """The error of every input whose extractor did not make its features. Files and networks that are missing are
    left to `missing_parts`."""
    for name, config in recipe.inputs.items():
        if not isinstance(config, FeaturesConfig) or config.extractor is None:
            continue
        if any(config.extractor.missing_here().values()):
            continue
        try:
            compare_extractors(recipe, [name], datasets)
        except MmgenError as error:
            if isinstance(error, DataError) and error.about:
                yield error


def compare_extractors(recipe: Recipe, inputs: Collection[str], datasets: Datasets | None) -> Recipe:
    """Compare every extractor that is named beside a file of features with the file; the recipe with what was compared.
    `datasets`: whose pictures are compared; only widths are without. Raises DataError.

    The fingerprints must be equal. An imported file has none of a network, so a few pictures of the data are
    extracted at the file's boxes: their features must be as wide as those of the file, and correlate with them."""
    compared = dict(recipe.inputs)
    for name in inputs:
        config = recipe.inputs[name]
        if not isinstance(config, FeaturesConfig) or config.features is None or config.allow_other_features:
            continue
        if config.extractor is None or not _reads_pictures(config):
            continue
        with contextlib.closing(open_store(config.features)) as store:
            extractor = config.extractor.build()
            fingerprint = json.loads(json.dumps(dict(extractor.fingerprint)))
            if fingerprint == store.fingerprint:
                continue
            if is_imported(store.fingerprint):
                problem = _unlike(extractor, store, getattr(config, "max_regions", None), datasets)
            else:
                problem = difference(store.fingerprint, fingerprint, ("in the file", "of this extractor"))
            if problem:
                error = DataError(
                    f"this extractor did not make the features of {in_words(store.fingerprint)} in {config.features} "
                    f"({problem}); use the extractor and settings that made them, leave the extractor out, or set "
                    "allow_other_features = true"
                )
                error.about = ("inputs", name, "extractor", "type")
                raise error
        compared[name] = config.model_copy(update={"compared": fingerprint})
    return recipe.model_copy(update={"inputs": compared})


def _reads_pictures(config: FeaturesConfig) -> bool:
    return config.extractor is not None and config.extractor.source == "pictures"


def _unlike(
    extractor: Extractor, store: FeatureStore | MultiFileStore, limit: int | None, datasets: Datasets | None
) -> str:
    """How the features of pictures differ from those of a file: in width, region by region, or, where no region has the
    same box, in range; "" if they do not."""
    pictures, known = list[Picture](), dict[str, Record]()
    with contextlib.suppress(DataError):  # the data have no pictures
        stored = (picture for picture in (datasets.pictures() if datasets else ()) if store.count(picture.key))
        for picture in itertools.islice(stored, COMPARED):
            known[picture.key] = record = store.read(picture.key, limit)
            boxes = None if record.boxes is None else record.boxes.tolist()
            pictures.append(Picture(picture.key, picture.load, boxes))
    pictures = pictures or [Picture("blank", partial(Image.new, "RGB", (224, 224)))]
    results = list(extractor.records(pictures))
    records = [record for record in results if isinstance(record, Record)]
    if not records:
        return f"picture '{pictures[0].key}': {getattr(results[0], 'reason', '') if results else 'no features'}"
    if records[0].features.shape[1] != store.width:
        return f"width: {store.width} in the file, {records[0].features.shape[1]} of this extractor"
    pairs = [(record, known[record.key]) for record in records if record.key in known]
    if correlations := [correlation for pair in pairs for correlation in _correlations(*pair)]:
        if (mean := sum(correlations) / len(correlations)) >= LEAST_CORRELATION:
            return ""
        return f"their regions correlate by {mean:.2f}, those of one network by at least {LEAST_CORRELATION}"
    in_range = FeatureRange.of(store, limit) if pairs else None
    if in_range is not None and not in_range.has(records[0].features[:limit]):
        return f"those of picture '{records[0].key}' are far from all in the file"
    if datasets is not None:
        what = "width and range" if in_range else "width"
        log.warning(f"{store.path}: only the {what} of its features could be compared with the extractor's: {NO_BOXES}")
    return ""


def _correlations(record: Record, known: Record) -> list[float]:
    """The correlation of a picture's features with known ones, for every region with the same box; [] without boxes.

    Measured with ResNets of random weights on 3 photographs: 0.99 and more for the same network after JPEG of quality
    30, or with pictures of half the size; at least 0.95 with half its image_size; at most 0.23 for another network."""
    if record.boxes is None or known.boxes is None:
        return []
    distances = np.abs(record.boxes[:, None] - known.boxes[None]).max(-1)  # (R, R of known)
    same = np.flatnonzero(distances.min(1) < SAME_BOX)
    rows = record.features[same], known.features[distances[same].argmin(1)]
    ours, theirs = (row.astype(np.float64) - row.mean(1, keepdims=True, dtype=np.float64) for row in rows)
    norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    values: list[float] = ((ours * theirs).sum(1)[norms > 0] / norms[norms > 0]).tolist()
    return values
