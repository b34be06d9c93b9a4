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
    if config.images is not None and not (config.folder / config.images).is_dir():
        missing[config.folder / config.images] = "the folder of raw images"
    if missing:
        raise DataError(_message(release.name, missing))
    return found


def _candidates(folder: Path, names: Iterable[Path]) -> Iterator[Path]:
    """Where a file may lie: in the folder, or in `annotations` as COCO's archive has it; also gzipped."""
    for name in names:
        for place in (folder / name, folder / "annotations" / name.name):
            yield from (place, place.with_name(f"{place.name}.gz"))


def _message(name: str, missing: dict[Path, str]) -> str:
    lines = [f"{name}: {len(missing)} files are missing:" if len(missing) > 1 else f"{name}: a file is missing:"]
    lines += [f"  {path}  <- {where}" if where else f"  {path}" for path, where in missing.items()]
    return "\n".join(
        [
            *lines,
            "  put them there, or name others in data.files and data.caption_files (caption_files = [] does without "
            "captions)",
        ]
    )
