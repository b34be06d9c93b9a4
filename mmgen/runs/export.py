"""Export of a recipe's data set in a published format: files, pictures, and region features."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..configs import DatasetConfig, ExtractorConfig, FeaturesConfig
from ..data.part_checks import Examples
from ..errors import DataError, MmgenError, RunError
from ..features.pixels import load_image
from ..features.stores import open_store
from ..files import image_key, write_folder
from ..parts import FailedImage, Picture, Record
from ..progress import Progress
from ..reading.export import Exported, ExportedPicture, Exporter
from ..recipe.tables import Recipe
from ..registry import Registry, find_format

PLAIN = re.compile(r"[\w@][\w.@ +-]*")  # keys of pictures that may name files


@dataclass(frozen=True)
class Summary:
    """Counts of an export. `data`: the recipe keys that read the export, except `folder`."""

    data: dict[str, Any]
    examples: dict[str, int]
    pictures: int
    features: int


def find_exporter(name: str, registry: Registry) -> Exporter:
    """The exporter of a format. Raises DataError for an unknown format, PluginError if two plugins have one."""
    exporters = [
        (part, form)
        for part in registry.of_kind("dataset")
        if issubclass(part.config, DatasetConfig)
        for form in part.config.exporters()
    ]
    return find_format("format", name, exporters)[1]


def find_feature_format(recipe: Recipe, registry: Registry) -> type[ExtractorConfig] | None:
    """The extractor whose format the recipe's features can be exported in, the first by name; None for a recipe
    without an input of stored features. Raises MmgenError if no plugin has such a format."""
    if _find_feature_source(recipe) is None:
        return None
    for part in registry.of_kind("extractor"):
        if issubclass(part.config, ExtractorConfig) and part.config.exported_as:
            return part.config
    raise MmgenError("no installed plugin writes files of features; use --no-features")


def export(
    recipe: Recipe,
    config: DatasetConfig,
    form: Exporter,
    folder: Path,
    features: type[ExtractorConfig] | None,
    progress: Progress,
) -> Summary:
    """Write the data set of `config` into a new folder, completely or not at all. `features`: also write the features
    of the recipe's input of stored features, in this extractor's format. Raises RunError for a folder that is not
    empty, DataError for examples that the format cannot express."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: already exists and is not empty; choose another folder")
    splits = {}
    for split in config.build().splits():
        split_config = form.config(config, split)
        splits[split] = Examples(split_config).check(split, split_config.build().split(split))
    _check_labels(splits, form, config)
    return write_folder(folder, lambda place: _write_splits(recipe, config, form, place, splits, features, progress))


def _check_labels(splits: dict[str, Any], form: Exporter, config: DatasetConfig) -> None:
    for split, examples in splits.items():
        for example in examples:
            if missing := [name for name in form.required_labels if name not in example.labels]:
                raise DataError(
                    f"data ({config.type}): example '{example.id}' of '{split}' has no label '{missing[0]}', which "
                    f"{form.name} needs"
                )


def _write_splits(
    recipe: Recipe,
    config: DatasetConfig,
    form: Exporter,
    folder: Path,
    splits: dict[str, Any],
    features: type[ExtractorConfig] | None,
    progress: Progress,
) -> Summary:
    dataset = config.build()
    shown_keys = {key for examples in splits.values() for example in examples for key in example.shown("image")}
    pictures = _save_pictures(
        [picture for picture in dataset.pictures() if picture.key in shown_keys], folder / form.images, progress
    )
    if missing_keys := shown_keys - pictures.keys():
        raise DataError(
            f"data ({config.type}): the data set has no picture of '{min(missing_keys)}' and "
            f"{len(missing_keys) - 1} others"
        )
    data = form.write(Exported(splits, dataset.vocabularies(), pictures), folder)
    sizes = {key: (picture.width, picture.height) for key, picture in pictures.items()}
    source = _find_feature_source(recipe)
    feature_count = 0
    if features and source:
        shown_pictures = (picture for picture in dataset.pictures() if picture.key in shown_keys)
        with progress.task("features", len(shown_keys), "images") as advance:
            records = _count_progress(_feature_records(source, sizes, shown_pictures), advance)
            feature_count = features.write(folder / features.exported_as, records, sizes)
    counts = {split: len(examples) for split, examples in splits.items()}
    return Summary({**data, "images": form.images}, counts, len(pictures), feature_count)


def _save_pictures(pictures: list[Picture], folder: Path, progress: Progress) -> dict[str, ExportedPicture]:
    """Save pictures as PNG files, named by their keys."""
    folder.mkdir(parents=True, exist_ok=True)
    saved = {}
    with progress.task("pictures", len(pictures), "images") as advance:
        for picture in pictures:
            file = f"{picture.key}.png"
            if len(file) > 200 or not PLAIN.fullmatch(picture.key) or image_key(file) != picture.key:
                raise DataError(f"picture '{picture.key:.60}': the key is not a valid file name")
            image = load_image(picture)
            image.save(folder / file)
            width, height = image.size
            saved[picture.key] = ExportedPicture(file, width, height, picture.boxes or (), picture.region_names or ())
            advance()
    return saved


def _find_feature_source(recipe: Recipe) -> FeaturesConfig | None:
    return next((config for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)), None)


def _feature_records(source: FeaturesConfig, sizes: dict[str, Any], pictures: Iterable[Picture]) -> Iterator[Record]:
    if source.features is not None:
        store = open_store(source.features)
        yield from (store.read(key) for key in sizes)
    elif source.extractor is not None:
        for record in source.extractor.build().records(pictures):
            if isinstance(record, FailedImage):
                raise DataError(f"picture '{record.key}': no features: {record.reason}")
            yield record


def _count_progress(records: Iterable[Record], advance: Any) -> Iterator[Record]:
    for record in records:
        yield record
        advance()
