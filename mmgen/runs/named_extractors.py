"""The extractor that a recipe names beside a file of features, compared with the file before anything is trained."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from PIL import Image

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..errors import DataError, MmgenError
from ..features.fingerprints import difference, in_words
from ..features.multi_file import MultiFileStore
from ..features.statistics import FeatureRange
from ..features.store import FeatureStore
from ..features.stores import open_store
from ..parts import Extractor, Picture, Record
from ..recipe.tables import Recipe
from ..registry import built, installed


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

    The fingerprints must be equal. An imported file has none of a network, so one picture is extracted: its features
    must be as wide as those of the file and, if the data have pictures, be within their range."""
    compared = dict(recipe.inputs)
    for name in inputs:
        config = recipe.inputs[name]
        if not isinstance(config, FeaturesConfig) or config.features is None or config.allow_other_features:
            continue
        if config.extractor is None or not _reads_pictures(config):
            continue
        with contextlib.closing(open_store(config.features)) as store:
            extractor = built(config.extractor, config.extractor.build)
            fingerprint = json.loads(json.dumps(dict(extractor.fingerprint)))
            if fingerprint == store.fingerprint:
                continue
            if _is_imported(store.fingerprint):
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


def _is_imported(fingerprint: Mapping[str, object]) -> bool:
    """Whether features come from a published file, whose fingerprint names the reader of the file."""
    part = installed().names("extractor").get(str(fingerprint.get("extractor")))
    return part is not None and getattr(part.config, "source", "") == "file"


def _unlike(
    extractor: Extractor, store: FeatureStore | MultiFileStore, limit: int | None, datasets: Datasets | None
) -> str:
    """How the features of a picture differ from those of a file: in width or range; "" if they do not."""
    picture = Picture("blank", partial(Image.new, "RGB", (224, 224)))
    with contextlib.suppress(DataError):  # the data have no pictures: only widths are compared
        pictures = datasets.pictures() if datasets else ()
        picture = next((candidate for candidate in pictures if candidate.key in store), picture)
    record = next(iter(extractor.records([picture])), None)
    if not isinstance(record, Record):
        return f"picture '{picture.key}': {record.reason if record else 'no features'}"
    if record.features.shape[1] != store.width:
        return f"width: {store.width} in the file, {record.features.shape[1]} of this extractor"
    known = FeatureRange.of(store, limit) if picture.key in store else None
    if known is not None and not known.has(record.features[:limit]):
        return f"those of picture '{picture.key}' are far from all in the file"
    return ""
