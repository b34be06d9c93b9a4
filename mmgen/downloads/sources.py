"""What there is to fetch: the published sets of the installed plugins, from the TOML files that their configs name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import Field

from ..errors import DataError, unknown
from ..reading.rows import validate
from ..registry import installed
from ..settings import Config


class Source(Config):
    """What lies at `urls`, addresses that are tried in this order."""

    urls: tuple[str, ...] = Field(min_length=1)

    @property
    def host(self) -> str:
        """The host of the first address."""
        return urlsplit(self.urls[0]).netloc


class SourceFile(Source):
    """A file, or a zip archive with several. Without a SHA-256, the first download decides (`downloads.json`).

    name      its name in the folder; by default as in the address
    bytes     its size, which is checked; None if nobody knows it
    estimate  bytes to transfer, if `bytes` is not known or not what is read
    sha256    of the file, "" if nobody knows it
    members   of an archive: the ends of the wanted members' paths, with * if several -> SHA-256, or ""
    ranges    read only the members of the archive, not all of it
    dead      addresses that are not tried -> since when they are dead
    """

    name: str = ""
    bytes: int | None = None
    estimate: int | None = None
    sha256: str = ""
    members: Mapping[str, str] = {}
    ranges: bool = False
    dead: Mapping[str, str] = {}

    @property
    def targets(self) -> tuple[str, ...]:
        """The names, or patterns, of the files in the folder."""
        return tuple(self.members) or (self.name or Path(urlsplit(self.urls[0]).path).name,)


class SourcePictures(Source):
    """Pictures by their numbers, which files of the set list. Their addresses have {id}.

    name        file name with {id}, such as COCO_train2014_{id:012d}.jpg
    listed_in   files that list them
    pattern     regular expression of an entry; its group is the number
    sizes_in    file in COCO's format that has their widths and heights, which are checked; "" for none
    count       how many there are
    mean_bytes  of a picture
    """

    name: str
    listed_in: tuple[str, ...]
    pattern: str
    sizes_in: str = ""
    count: int
    mean_bytes: int


class SourceSet(Config):
    """A published set.

    licences  what -> its licence
    folder    where recipes look for it; by default data/NAME
    form      what a person does: the steps, with {folder} and {images}, where files belong
    """

    about: str
    licences: Mapping[str, str]
    folder: str = ""
    form: str = ""
    files: tuple[SourceFile, ...] = ()
    pictures: tuple[SourcePictures, ...] = ()


def published_sets() -> dict[str, SourceSet]:
    """All sets by name. Raises DataError for a file of sources that cannot be read."""
    paths = dict.fromkeys(part.config.sources for part in installed().parts)
    return {name: table for path in paths if path for name, table in _read(path).items()}


def published_set(name: str) -> SourceSet:
    """Raises DataError for an unknown name."""
    sets = published_sets()
    if problem := unknown(name, sorted(sets)):
        raise DataError(problem)
    return sets[name]


def _read(path: Path) -> dict[str, SourceSet]:
    try:
        tables: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    return {name: validate(table, SourceSet, f"{path}: {name}") for name, table in tables.items()}
