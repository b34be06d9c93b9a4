"""The data set of published files: finds them, reads a split on first use, leaves out what cannot be used."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mmgen.configs import Download
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.features.images import images_by_key, open_image
from mmgen.parts import Dataset, Picture
from mmgen.reading.rows import Model, raw_rows, validated

from .lines import read_images

if TYPE_CHECKING:
    from .configs import Published

Files = Mapping[str, Sequence[Path]]
Value = TypeVar("Value")

log = logging.getLogger("mmgen")


class Finder:
    """Looks for the files of a data set and collects the missing ones until `finish`."""

    def __init__(self, config: Published) -> None:
        self.config = config
        self._missing: list[str] = []

    def file(self, *names: Path | str, where: str = "") -> Path:
        """The first of these names that exists, gzipped or not; else the first name. `where`: where to get the file."""
        folder = self.config.folder
        for name in names:
            for path in (folder / name, *(folder / below / Path(name).name for below in self.config.below)):
                for candidate in (path, path.with_name(f"{path.name}.gz")):
                    if candidate.is_file():
                        return candidate
        self._missing.append(f"  {folder / names[0]}{where and f'  <- {where}'}")
        return folder / names[0]

    def files(self, split: str, *published: str, where: str = "") -> list[Path]:
        """The files of a split: those that the config names, or the first of the published names that exists."""
        names: list[tuple[Path | str, ...]] = [(path,) for path in self.config.named_files(split)]
        names = names or [published]
        return [self.file(*alternatives, where=where or self.config.about.source) for alternatives in names]

    def subfolder(self, name: Path | str, where: str) -> Path:
        """A folder. `where`: where to get it."""
        if not (path := self.config.folder / name).is_dir():
            self._missing.append(f"  {path} (a folder)  <- {where}")
        return path

    def splits(self) -> dict[str, Files]:
        """The files of the splits in use, by split."""
        used = (self.config.train_split, self.config.validation_split, self.config.test_split)
        files = {split: self.config.find(self, split) for split in self.config.names() if split in used}
        if self.config.images is not None:
            self.subfolder(self.config.images, "data.images names the folder of raw images")
        return files

    def finish(self) -> None:
        """Raises one DataError that lists all missing files and folders."""
        if missing := list(dict.fromkeys(self._missing)):
            count = f"{len(missing)} files are" if len(missing) > 1 else "a file is"
            advice = (
                f"  put the files there, or name others in [data] (`mmgen plugins {self.config.type}` has the keys)"
            )
            if name := self.config.source_set:
                command = Download(name, self.config.folder, self.config.images).command
                advice += f"; `{command}` fetches what is published"
            raise DataError("\n".join((f"{self.config.about.name}: {count} missing:", *missing, advice)))


def is_complete(config: Published) -> bool:
    """Whether all files are there; false if `mmgen data get` has begun, and may have to go on."""
    finder = Finder(config)
    try:
        finder.splits()
        finder.finish()
    except DataError:
        return False
    return config.images is None or not (config.folder / "downloads.json").exists()


class PublishedData(Dataset):
    """The data set of a `Published` config. Raises DataError at once if files are missing, and on first use of a split
    if its files are invalid."""

    def __init__(self, config: Published) -> None:
        self.config, self.about = config, config.about
        finder = Finder(config)
        self.files = finder.splits()
        self._held_out = config.held_out and finder.file(config.held_out)
        finder.finish()
        self._splits: dict[str, tuple[Sequence[Example], Counter[str]]] = {}
        self._values: dict[str, Any] = {}

    def rows(
        self, split: str, files: str, model: type[Model], at: str = "", unique: str = ""
    ) -> Iterator[tuple[str, Model]]:
        """The rows of a split's files, with their places: see `mmgen.reading.rows`."""
        lines = chain.from_iterable(raw_rows(path, at) for path in self.files[split][files])
        return validated(lines, model, unique)

    def once(self, name: str, read: Callable[[], Value]) -> Value:
        """A value that is read on first use."""
        if name not in self._values:
            self._values[name] = read()
        return self._values[name]

    def main_file(self, split: str) -> Path:
        """The file that lists the examples of a split."""
        return next(chain.from_iterable(self.files[split].values()))

    def splits(self) -> tuple[str, ...]:
        return tuple(self.files)

    def split(self, name: str) -> Sequence[Example]:
        return self.load(name)[0]

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return self.config.vocabularies(self)

    def describe(self) -> dict[str, Any]:
        """A dict of name; examples: {split: number}; counts: {split: why examples are left out: number}; licence;
        source; and what the config adds."""
        splits = {name: self.load(name) for name in self.files}
        return {
            "name": self.about.name,
            "examples": {name: len(examples) for name, (examples, _) in splits.items()},
            "counts": {
                name: {why.format(s="s"): n for why, n in counts.items()} for name, (_, counts) in splits.items()
            },
            "licence": self.about.licence,
            "source": self.about.source,
            **self.config.described(self),
        }

    def pictures(self) -> Iterator[Picture]:
        if self.config.images is None:
            raise DataError(
                f"{self.about.name} has no raw images; set data.images, or give the embedder a file of features"
            )
        keys = (key for split in self.files for example in self.split(split) for key in example.shown("image"))
        for key in dict.fromkeys(keys):
            if key in self.pictures_at:
                boxes, region_names = self.config.boxes(self, key) or (None, None)
                yield Picture(key, partial(open_image, self.pictures_at[key]), boxes, region_names)

    @cached_property
    def pictures_at(self) -> dict[str, Path]:
        """Key -> file in the folder of images."""
        assert self.config.images is not None  # `pictures` checks this
        return images_by_key(self.config.folder / self.config.images)

    def load(self, name: str) -> tuple[Sequence[Example], Counter[str]]:
        """The examples of a split that remain, and how many were left out, by why; logged once."""
        if name not in self.files:
            raise DataError(f"{self.about.name}: split '{name}' is not in use; the splits are: {', '.join(self.files)}")
        if name in self._splits:
            return self._splits[name]
        counts, examples = Counter[str](), list[Example]()
        for item in self._read(name):
            if isinstance(item, str):
                counts[item] += 1
            elif lacks := self.config.lacks(self, name, item) or self._without_picture(item):
                counts[f"example{{s}} {lacks}"] += 1
            else:
                examples.append(item)
        left_out = ", ".join(f"{n:,} {why.format(s='s' * (n != 1))}" for why, n in counts.items())
        if not examples:
            reason = left_out or "the file is empty"
            raise DataError(f"{self.main_file(name)}: no examples remain for the split '{name}': {reason}")
        if left_out:
            log.warning("%s %s: left out %s", self.about.name, name, left_out)
        self._splits[name] = examples, counts
        return self._splits[name]

    def _read(self, split: str) -> Iterable[Example | str]:
        """What the config reads, without the examples about images that the split must not have (`held_out`)."""
        items = self.config.read(self, split)
        if (path := self._held_out) is None:
            return items
        everything, images = [*items], self.once("held out", lambda: read_images(path))
        examples = (item for item in everything if isinstance(item, Example))
        held_out = {example.id for example in examples if not images.isdisjoint(example.shown("image"))}
        training = split == self.config.train_split
        kept = (item for item in everything if isinstance(item, str) or (item.id in held_out) != training)
        return kept if held_out else everything

    def _without_picture(self, example: Example) -> str:
        """Which picture of an example is not among the raw images; "" if all are, or if there are no raw images."""
        keys = example.shown("image")
        if self.config.images is None or (keys and all(key in self.pictures_at for key in keys)):
            return ""
        return "without a picture"
