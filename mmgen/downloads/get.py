"""Fetches a published set into a folder: its files, its pictures, and a record of them, `downloads.json`."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..errors import DataError
from ..features.images import open_image
from ..files import clear_partials, locked, read_table, write_json
from ..progress import Progress, table
from .archives import unpack
from .https import At, NoRanges, Refused, RemoteFile, download, file_sha256
from .sources import SourceFile, SourcePictures, SourceSet

RECORD = "downloads.json"
CONNECTIONS = 8
BUFFER = 4 << 20  # bytes of an archive that one request asks for
GONE = "gone"  # in the record, in place of a picture's SHA-256: the server has no such picture
MOST_FAILURES = 25  # pictures that fail before the others are not tried
Picture = tuple[SourcePictures, int]  # its source and number
Row = tuple[str, int | None, str]  # files, bytes or None, host


@dataclass(frozen=True)
class Request:
    """A set to fetch into a folder, of whose files some may be there. `images`: the folder for its pictures inside of
    `folder`, None without pictures. A folder "images-1500" gets 1,500 pictures, the same for everybody."""

    name: str
    source: SourceSet
    folder: Path
    images: Path | None = None

    @property
    def record(self) -> dict[str, Any]:
        """What was fetched: {"licences": {licence: date}, "files": {name: {url, sha256, date}}, "pictures": {name:
        SHA-256 or GONE}}."""
        path = self.folder / RECORD
        kinds = dict.fromkeys(("licences", "files", "pictures"), dict)
        return read_table(path, **kinds) if path.exists() else {name: {} for name in kinds}

    def missing_files(self) -> list[SourceFile]:
        """The files that are not there."""
        fetched = self.record["files"]
        return [
            file
            for file in self.source.files
            if not all((self.folder / name).is_file() or ("*" in name and name in fetched) for name in file.targets)
        ]

    def pictures(self) -> dict[str, Picture]:
        """The pictures to have: name -> source, number. The files that list them must be there."""
        listed = {
            source.name.format(id=int(match[1])): (source, int(match[1]))
            for source in self.source.pictures
            for name in source.listed_in
            for match in re.finditer(source.pattern, (self.folder / name).read_text(encoding="utf-8"))
        }
        names = sorted(listed, key=lambda name: hashlib.sha256(name.encode()).digest())[: self._limit()]
        return {name: listed[name] for name in names}

    def missing_pictures(self, pictures: Mapping[str, Picture]) -> dict[str, Picture]:
        """Those of `pictures` that are not there, and that the server did not say it does not have."""
        known, there = self.record["pictures"], self.folder / (self.images or "")
        return {
            name: source
            for name, source in pictures.items()
            if known.get(name) != GONE and not (there / name).is_file()
        }

    def missing(self) -> list[Row]:
        """What is to be fetched."""
        files = self.missing_files()
        rows = [(", ".join(f.targets), f.estimate or f.bytes, urlsplit(f.urls[0]).hostname or "") for f in files]
        if self.images is not None and (sources := self.source.pictures):
            listed = {name for source in sources for name in source.listed_in}
            if listed & {name for file in files for name in file.targets}:
                count = min(sum(source.count for source in sources), self._limit() or 1 << 60)
            else:
                count = len(self.missing_pictures(self.pictures()))
            host = urlsplit(sources[0].urls[0]).hostname or ""
            rows += [(f"{count:,} pictures", count * sources[0].mean_bytes, host)] if count else []
        return rows

    def describe(self, rows: Sequence[Row]) -> str:
        """What would be fetched (`missing`), for people: files, MB, host, licences."""
        lines = [f"{self.name}: {self.source.about} -> {self.folder}"]
        if rows:
            cells = [[name, host, "?" if size is None else f"{size / 1e6:,.1f}"] for name, size, host in rows]
            lines.append(table([["file", "from", "MB"], *cells], texts=2))
        elif self.source.files:
            lines.append("  everything is there")
        lines += [f"  licence of {what}: {licence}" for what, licence in self.source.licences.items()]
        return "\n".join([*lines, *([f"  by hand: {self.source.form}"] if self.source.form else [])])

    def _limit(self) -> int | None:
        number = re.fullmatch(r"images-(\d+)", self.images.name if self.images else "")
        return int(number[1]) if number else None


def fetch(request: Request, progress: Progress) -> None:
    """Fetch what is missing. It may be stopped at any time; the next call goes on. Raises DataError for what cannot be
    fetched; RunError if a file cannot be written."""
    folder = request.folder
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".downloads.lock", lambda: progress.say(f"{folder}: waiting for another download")):
        clear_partials(folder)
        size, free = sum(size or 0 for _, size, _ in request.missing()), shutil.disk_usage(folder).free
        if size > free:
            raise DataError(f"{folder}: needs {size / 1e6:,.0f} MB, {free / 1e6:,.0f} MB are free; free some space")
        record = request.record
        record["licences"] |= dict.fromkeys(request.source.licences.values(), date.today().isoformat())
        try:
            for file in request.missing_files():
                record["files"] |= _fetch_file(file, folder, record["files"], progress)
                write_json(folder / RECORD, record)
            if request.images is not None:
                _fetch_pictures(request, record["pictures"], progress)
        finally:
            write_json(folder / RECORD, record)


def _fetch_file(file: SourceFile, folder: Path, known: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Fetch a file from the first address that has it. Returns its part of the record. Raises DataError."""
    expected = {name: known.get(name, {}).get("sha256", "") for name in file.targets} | {
        name: digest for name, digest in file.members.items() if digest
    }
    problems, size = list[str](), file.estimate or file.bytes
    for url in file.urls:
        record: dict[str, Any] = {}
        try:
            with progress.task(file.targets[0], size and size // 1000, "kB") as advance:
                shown = 0

                def at(position: int) -> None:
                    nonlocal shown
                    advance(position // 1000 - shown)  # noqa: B023
                    shown = position // 1000

                for target, name, digest in _results(file, url, folder, expected, at):
                    sha256 = digest if target == name else ""
                    record[target] = {"url": url, "sha256": sha256, "date": date.today().isoformat()}
            return record
        except Refused as error:
            problems.append(f"{url}: {error}")
    dead = "".join(f"; {url} is dead since {since}" for url, since in file.dead.items())
    advice = "run the same command again later, or put the file there by hand"
    raise DataError(f"{folder / file.targets[0]}: cannot be fetched: {'; '.join(problems)}{dead}; {advice}")


def _results(
    file: SourceFile, url: str, folder: Path, expected: Mapping[str, str], at: At
) -> Iterator[tuple[str, str, str]]:
    """Fetch a file from one address. Yields name or pattern, name, SHA-256. Raises Refused."""
    if not file.members:
        (name,) = file.targets
        yield name, name, download(url, folder / name, file.bytes, file.sha256 or expected[name], at=at)
        return
    if file.ranges:
        try:
            with io.BufferedReader(RemoteFile(url, file.bytes), BUFFER) as remote:
                yield from unpack(remote, expected, folder, at)
            return
        except NoRanges:
            pass
    archive = folder / f".{Path(urlsplit(url).path).name}"
    if not archive.exists():  # a stopped call may have left it, complete
        download(url, archive, file.bytes, file.sha256, at=at)
    try:
        with archive.open("rb") as opened:
            yield from unpack(opened, expected, folder)
    finally:
        archive.unlink()


def _fetch_pictures(request: Request, known: dict[str, str], progress: Progress) -> None:
    """Fetch the pictures, several at a time. `known` gets their SHA-256. Raises DataError if some are missing then."""
    assert request.images is not None
    pictures = request.pictures()
    todo, count = request.missing_pictures(pictures), len(pictures)
    folder, sizes = request.folder / request.images, _sizes(request)
    unrecorded = pictures.keys() - todo.keys() - known.keys()  # of a call that was killed
    known |= {name: file_sha256(folder / name) for name in unrecorded}
    failures, gone = dict[str, str](), set[str]()

    def given_up() -> bool:
        return len(failures) - len(gone) >= MOST_FAILURES or len(gone) > count // 20 + 1

    def fetch_one(name: str) -> None:
        if given_up():
            return
        source, number = todo[name]
        check, missing = partial(_check_picture, size=sizes.get(number)), True
        for url in source.urls:
            try:
                known[name] = download(url.format(id=number), folder / name, None, known.get(name, ""), check)
                failures.pop(name, None)
                return
            except Refused as error:
                failures[name], missing = f"{url.format(id=number)}: {error}", missing and error.gone
        gone.update([name] * missing)

    pool = ThreadPoolExecutor(CONNECTIONS)
    try:
        with progress.task("pictures", count, "pictures", done=count - len(todo)) as advance:
            for _ in pool.map(fetch_one, todo):
                advance()
    finally:
        pool.shutdown(cancel_futures=True)
    if gone and not given_up():
        known |= dict.fromkeys(gone, GONE)
        progress.say(f"{folder}: {len(gone)} of {count:,} pictures no longer exist: {', '.join(sorted(gone)[:3])}")
        failures = {name: reason for name, reason in failures.items() if name not in gone}
    if failures:
        left, reason = sum(not (folder / name).is_file() for name in todo), next(iter(failures.values()))
        raise DataError(
            f"{folder}: {left:,} of {count:,} pictures are missing: {reason}; run the same command again later, "
            "or put pictures there by hand"
        )


def _sizes(request: Request) -> dict[int, tuple[int, int]]:
    """Number of a picture -> width and height, as far as the set's files know them."""
    paths = {request.folder / source.sizes_in for source in request.source.pictures if source.sizes_in}
    rows = [row for path in paths for row in json.loads(path.read_text(encoding="utf-8"))["images"]]
    return {row["id"]: (row["width"], row["height"]) for row in rows if "width" in row}


def _check_picture(part: Path, size: tuple[int, int] | None) -> None:
    """Raises Refused for a file that is not a picture, or one of another size."""
    try:
        image = open_image(part)
    except DataError as error:
        raise Refused(str(error)) from None
    if size and sorted(image.size) != sorted(size):
        raise Refused("has {} x {} pixels, expected {} x {}".format(*image.size, *size))
