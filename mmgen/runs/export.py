"""A recipe's data set written in a published format: files, pictures, and region features."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..configs import DatasetConfig, FeaturesConfig
from ..data.checked import Examples
from ..errors import DataError, MmgenError, RunError, did_you_mean
from ..features.multi_file import open_store
from ..features.tsv import write_tsv
from ..files import image_key, write_folder
from ..parts import FailedImage, Picture, Record
from ..progress import Progress
from ..reading.export import Exported, ExportedPicture, Exporter
from ..recipe.tables import Recipe
from ..registry import Registry

FEATURES = "regions.tsv"
PLAIN = re.compile(r"[\w@][\w.@ +-]*")  # keys of pictures that may name files


@dataclass(frozen=True)
class Summary:
    """What was written. `data`: the keys of a recipe that read it, but for `folder`."""

    data: dict[str, Any]
    examples: dict[str, int]
    pictures: int
    features: int


def exporter(name: str, registry: Registry) -> Exporter:
    """Who writes a format. Raises MmgenError with what there is."""
    found = {
        each.name: each
        for part in registry.of_kind("dataset")
        if issubclass(part.config, DatasetConfig)
        for each in part.config.exporters()
    }
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise MmgenError(f"--as {name}: no format of that name{did_you_mean(name, found)}; there are: {known}")
    return found[name]


def export(
    recipe: Recipe, config: DatasetConfig, form: Exporter, folder: Path, features: bool, progress: Progress
) -> Summary:
    """Write the data set of `config` into a new folder, whole or not at all. `features`: those of the recipe's input of
    stored features too, where it has one. Raises RunError for a folder that is there, DataError for what the format
    cannot say."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RunError(f"{folder}: is there and not empty; name a new folder")
    splits = {}
    for split in config.build().splits():
        asked = form.config(config, split)
        splits[split] = Examples(asked).check(split, asked.build().split(split))
    _check_labels(splits, form, config)
    return write_folder(folder, lambda place: _write(recipe, config, form, place, splits, features, progress))


def _check_labels(splits: dict[str, Any], form: Exporter, config: DatasetConfig) -> None:
    for split, examples in splits.items():
        for example in examples:
            if missing := [name for name in form.labels if name not in example.labels]:
                raise DataError(
                    f"data ({config.type}): example '{example.id}' of '{split}' has no label '{missing[0]}', of which "
                    f"{form.name} is made"
                )


def _write(
    recipe: Recipe,
    config: DatasetConfig,
    form: Exporter,
    folder: Path,
    splits: dict[str, Any],
    features: bool,
    progress: Progress,
) -> Summary:
    dataset = config.build()
    shown = {key for examples in splits.values() for example in examples for key in example.shown("image")}
    pictures = _saved([each for each in dataset.pictures() if each.key in shown], folder / form.images, progress)
    if absent := shown - pictures.keys():
        raise DataError(f"data ({config.type}): no raw picture of '{min(absent)}', nor of {len(absent) - 1} others")
    data = form.write(Exported(splits, dataset.labels(), pictures), folder)
    sizes = {key: (each.width, each.height) for key, each in pictures.items()}
    source = next((each for each in recipe.inputs.values() if isinstance(each, FeaturesConfig)), None)
    written = 0
    if features and source is not None:
        wanted = (each for each in dataset.pictures() if each.key in shown)
        with progress.task("features", len(shown), "images") as advance:
            written = write_tsv(folder / FEATURES, _counted(_records(source, sizes, wanted), advance), sizes)
    counts = {split: len(examples) for split, examples in splits.items()}
    return Summary({**data, "images": form.images}, counts, len(pictures), written)


def _saved(pictures: list[Picture], folder: Path, progress: Progress) -> dict[str, ExportedPicture]:
    """Writes pictures as PNG, under names whose keys are theirs."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    with progress.task("pictures", len(pictures), "images") as advance:
        for picture in pictures:
            file = f"{picture.key}.png"
            if len(file) > 200 or not PLAIN.fullmatch(picture.key) or image_key(file) != picture.key:
                raise DataError(f"the picture '{picture.key:.60}' cannot be a file of this name")
            image = picture.load()
            image.save(folder / file)
            width, height = image.size
            found[picture.key] = ExportedPicture(file, width, height, picture.boxes or (), picture.labels or ())
            advance()
    return found


def _records(source: FeaturesConfig, sizes: dict[str, Any], pictures: Iterable[Picture]) -> Iterator[Record]:
    if source.features is not None:
        store = open_store(source.features)
        yield from (store.read(key) for key in sizes)
    elif source.extractor is not None:
        for record in source.extractor.build().records(pictures):
            if isinstance(record, FailedImage):
                raise DataError(f"no features of the picture '{record.key}': {record.reason}")
            yield record


def _counted(records: Iterable[Record], advance: Any) -> Iterator[Record]:
    for record in records:
        yield record
        advance()
