"""Where the files of a data set lie; what is not there is told in one message that says how to get it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from mmgen.errors import DataError

from . import Questions


class Files(NamedTuple):
    """The files of a split."""

    questions: Path
    captions: tuple[Path, ...]


def find(config: Questions) -> dict[str, Files]:
    """Files by split. Raises one DataError that lists everything that is missing."""
    release, missing = config.published, {}

    def first(names: Iterable[Path]) -> Path:
        for candidate in _candidates(config.folder, names):
            if candidate.is_file():
                return candidate
        expected = config.folder / next(iter(names))
        missing[expected] = release.where(expected.name)
        return expected

    found = {}
    for split, names in config.split_files().items():
        published = (Path(release.captions[split]),) if split in release.captions else ()
        captions = published if config.caption_files is None else config.caption_files
        found[split] = Files(first(names), tuple(first([name]) for name in captions))
    images = None if config.images is None else config.folder / config.images
    if missing or (images and not images.is_dir()):
        raise DataError(_message(release.name, missing, None if images is None or images.is_dir() else images))
    return found


def _candidates(folder: Path, names: Iterable[Path]) -> Iterator[Path]:
    """Where a file may lie: in the folder, or in `annotations` as COCO's archive has it; also gzipped."""
    for name in names:
        for place in (folder / name, folder / "annotations" / name.name):
            yield from (place, place.with_name(f"{place.name}.gz"))


def _message(name: str, missing: dict[Path, str], images: Path | None) -> str:
    """`missing`: files, and where each is to be had; `images`: the folder of raw images that there is not."""
    lines = []
    if missing:
        count = f"{len(missing)} files are" if len(missing) > 1 else "a file is"
        lines = [f"{name}: {count} missing:"]
        lines += [f"  {path}  <- {where}" if where else f"  {path}" for path, where in missing.items()]
        lines.append(
            "  put them there, or name others in data.files and data.caption_files (caption_files = [] does without "
            "captions)"
        )
    if images:
        wrong = "is no folder" if images.exists() else "no such folder"
        lines.append(f"{name}: {images}: {wrong}; data.images names the folder of raw images")
    return "\n".join(lines)
