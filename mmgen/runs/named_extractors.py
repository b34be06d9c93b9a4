"""The extractor that a recipe names beside a file of features, compared with the file before anything is trained."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Collection

import numpy as np

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..errors import DataError
from ..features.fingerprints import difference, in_words, is_imported
from ..features.multi_file import MultiFileStore
from ..features.store import FeatureStore
from ..features.stores import open_store
from ..parts import Extractor, Picture, Record
from ..recipe.tables import Recipe
from ..registry import built

COMPARED = 3  # pictures of the data
SAME_BOX = 0.02  # largest difference of a coordinate
LEAST_CORRELATION = 0.8


def compare_extractors(recipe: Recipe, inputs: Collection[str], datasets: Datasets) -> Recipe:
    """Compare every extractor that is named beside a file of features with the file; the recipe with what was compared.
    Raises DataError.

    The fingerprints must be equal. An imported file has none of a network, so a few pictures of the data are extracted
    at the file's boxes: their features must correlate with those of the file. Without
    pictures that have boxes in the file, nothing is compared."""
    compared = dict(recipe.inputs)
    for name in inputs:
        config = recipe.inputs[name]
        if not isinstance(config, FeaturesConfig) or config.features is None or config.allow_other_features:
            continue
        if config.extractor is None or config.extractor.source != "pictures":
            continue
        with contextlib.closing(open_store(config.features)) as store:
            extractor = built(config.extractor, config.extractor.build)
            fingerprint = json.loads(json.dumps(dict(extractor.fingerprint)))
            if fingerprint == store.fingerprint:
                continue
            if is_imported(store.fingerprint):
                problem = _unlike(extractor, store, datasets)
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


def _unlike(extractor: Extractor, store: FeatureStore | MultiFileStore, datasets: Datasets) -> str:
    """How the features of pictures differ from those of a file, region by region; "" if they do not."""
    with contextlib.suppress(DataError):  # the data have no pictures
        stored = (picture for picture in datasets.pictures() if store.count(picture.key))
        for picture in itertools.islice(stored, COMPARED):
            known = store.read(picture.key)
            boxes = None if known.boxes is None else known.boxes.tolist()
            for record in extractor.records([Picture(picture.key, picture.load, boxes)]):
                if isinstance(record, Record) and (problem := _difference(record, known)):
                    return f"picture '{picture.key}': {problem}"
    return ""


def _difference(record: Record, known: Record) -> str:
    """How a picture's features differ from known ones in the regions with the same box; "" if they do not.

    Correlations were measured with ResNets of random weights on 3 photographs: 0.99 and more for the same network after
    JPEG of quality 30, or with pictures of half the size; at least 0.95 with half its image_size; at most 0.23 for
    another network."""
    ours, theirs = record.features.shape[1], known.features.shape[1]
    if ours != theirs:
        return f"width {theirs} in the file, {ours} of this extractor"
    if record.boxes is None or known.boxes is None:
        return ""
    distances = np.abs(record.boxes[:, None] - known.boxes[None]).max(-1)  # (R, R of known)
    pairs = [(place, row.argmin()) for place, row in enumerate(distances) if row.min() < SAME_BOX]
    rows = [(record.features[place], known.features[match]) for place, match in pairs]
    correlations = [np.corrcoef(*pair)[0, 1] for pair in rows if all(np.ptp(row) for row in pair)]
    mean = np.mean(correlations) if correlations else 1.0
    return f"their regions correlate by {mean:.2f}" if mean < LEAST_CORRELATION else ""
