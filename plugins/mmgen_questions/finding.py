"""Which files each split of a data set has."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mmgen.reading.finding import Finder

from . import Questions

ADVICE = (
    "put them there, or name others in data.files and data.caption_files (caption_files = [] does without captions)"
)


class Files(NamedTuple):
    """The files of a split."""

    questions: Path
    captions: tuple[Path, ...]


def find(config: Questions) -> dict[str, Files]:
    """Files by split. Raises one DataError that lists everything that is missing."""
    release, found = config.published, {}
    finder = Finder(release.name, config.folder)
    for split, names in config.split_files().items():
        published = (Path(release.captions[split]),) if split in release.captions else ()
        captions = published if config.caption_files is None else config.caption_files
        found[split] = Files(
            finder.file(names, release.where(names[0].name)),
            tuple(finder.file([name], release.where(name.name)) for name in captions),
        )
    if config.images is not None:
        finder.subfolder(config.images, "data.images names the folder of raw images")
    finder.finish(ADVICE)
    return found
