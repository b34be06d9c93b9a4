"""Fetches a published set into a folder: its files, its pictures, and a record of them, `downloads.json`."""

from __future__ import annotations

import contextlib
import hashlib
import io
import queue
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from ..configs import Download
from ..errors import DataError
from ..features.images import open_image
from ..files import clear_partials, locked, read_table, write_json
from ..progress import Progress, table
from ..reading.rows import Row as FileRow
from ..reading.rows import raw_rows, validated
from ..reading.text import read_text
from .archives import unpack
from .https import At, NoRanges, Refused, RemoteFile, checked_sha256, download, first_success
from .sources import SourceFile, SourcePictures, SourceSet

RECORD = "downloads.json"
CONNECTIONS = 8
BUFFER = 4 << 20  # bytes of an archive that one request asks for
GONE = "gone"  # in the record, in place of the SHA-256 of a picture that is not asked for again
MOST_FAILURES = 25  # pictures that fail before the others are not tried
Picture = tuple[SourcePictures, int]  # its source and number
Row = tuple[str, int | None, str]  # files, bytes or None, host
Result = TypeVar("Result")


class SizedPicture(FileRow):
    """A picture in COCO's format."""

    id: int
    width: int = 0
    height: int = 0


@dataclass(frozen=True, kw_only=True)
class Request(Download):
    """A set to fetch, of whose files some may be there."""

    source: SourceSet

    @property
    def record(self) -> dict[str, Any]:
        """What was fetched: {"licences": {licence: date}, "files": {name: {url, sha256, date}}, "pictures": {name:
        SHA-256 or GONE}}."""
        path = self.folder / RECORD
        kinds = dict.fromkeys(("licences", "files", "pictures"), dict)
        return read_table(path, **kinds) if path.exists() else {name: {} for name in kinds}

    @property
    def pictures_folder(self) -> Path:
        return self.folder / (self.images or "images")

    def missing_files(self) -> list[SourceFile]:
        """The files that are not there, and archives of which not all that match a pattern may be."""
        fetched = self.record["files"]
        return [
            file
            for file in self.source.files
            if not all(("*" not in name or name in fetched) and any(self.folder.glob(name)) for name in file.targets)
        ]

    def pictures(self) -> dict[str, Picture]:
        """The pictures to have: name -> source, number. The files that list them must be there."""
        listed = {
            source.name.format(id=int(match[1])): (source, int(match[1]))
            for source in self.source.pictures
            for name in source.listed_in
            for match in re.finditer(source.pattern, read_text(self.folder / name))
        }
        names = sorted(listed, key=lambda name: hashlib.sha256(name.encode()).digest())[: self.limit]
        return {name: listed[name] for name in names}

    def missing_pictures(self, pictures: Mapping[str, Picture]) -> dict[str, Picture]:
        """Those of `pictures` that are neither there nor to be left out."""
        known, folder = self.record["pictures"], self.pictures_folder
        return {
            name: source
            for name, source in pictures.items()
            if known.get(name) != GONE and not (folder / name).is_file()
        }

    def missing(self) -> list[Row]:
        """What is to be fetched."""
        files = self.missing_files()
        rows = [(", ".join(f.targets), f.estimate or f.bytes, urlsplit(f.urls[0]).hostname or "") for f in files]
        if self.images is not None and (sources := self.source.pictures):
            listed = {name for source in sources for name in source.listed_in}
            if listed & {name for file in files for name in file.targets}:
                count = min(sum(source.count for source in sources), self.limit or 1 << 60)
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
        form = self.source.form.format(folder=self.folder, images=self.pictures_folder)
        return "\n".join([*lines, *[f"  by hand: {form}"] * bool(form)])

    def leave_out_missing(self) -> None:
        """Record the missing pictures as gone, so that a run goes on with the others."""
        record = self.record
        record["pictures"] |= dict.fromkeys(self.missing_pictures(self.pictures()), GONE)
        write_json(self.folder / RECORD, record)


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
        record["licences"] |= dict.fromkeys(request.source.licences.values(), _today())
        try:
            for file in request.missing_files():
                record["files"] |= _fetch_file(file, folder, record["files"], progress)
                write_json(folder / RECORD, record)
            if request.images is not None:
                _fetch_pictures(request, record["pictures"], progress)
        finally:
            write_json(folder / RECORD, record)


def _today() -> str:
    return date.today().isoformat()


def _fetch_file(file: SourceFile, folder: Path, known: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """Fetch a file. Returns its part of the record. Raises DataError."""
    expected = {name: file.members.get(name) or known.get(name, {}).get("sha256", "") for name in file.targets}

    def attempt(url: str) -> dict[str, Any]:
        with progress.task(file.targets[0], size and size // 1000, "kB") as advance:
            digests = _fetch_from(url, file, folder, expected, lambda count: advance(count // 1000))
        return {name: {"url": url, "sha256": sha256, "date": _today()} for name, sha256 in digests.items()}

    size = file.estimate or file.bytes
    try:
        return first_success(file.urls, attempt)
    except Refused as error:
        dead = "".join(f"; {url} is dead since {since}" for url, since in file.dead.items())
        advice = "run the same command again later, or put the file there by hand"
        raise DataError(f"{folder / file.targets[0]}: cannot be fetched: {error}{dead}; {advice}") from None


def _fetch_from(url: str, file: SourceFile, folder: Path, expected: Mapping[str, str], at: At) -> dict[str, str]:
    """Fetch a file from one address. Returns name -> SHA-256; of a pattern, that of the archive. Raises Refused."""
    if not file.members:
        (name,) = file.targets
        return {name: download(url, folder / name, file.bytes, file.sha256 or expected[name], at=at)}
    if file.ranges:
        with contextlib.suppress(NoRanges), io.BufferedReader(RemoteFile(url, file.bytes, at), BUFFER) as remote:
            return unpack(remote, expected, folder)
    patterns = [name for name in file.members if "*" in name]
    archive = folder / f".{Path(urlsplit(url).path).name}"
    digest = download(url, archive, file.bytes, file.sha256 or "".join(expected[name] for name in patterns[:1]), at=at)
    try:
        with archive.open("rb") as opened:
            digests = unpack(opened, {**expected, **dict.fromkeys(patterns, "")}, folder)
    finally:
        archive.unlink()
    return digests | dict.fromkeys(patterns, digest)


def _fetch_pictures(request: Request, known: dict[str, str], progress: Progress) -> None:
    """Fetch the pictures, several at a time. `known` gets their SHA-256. Raises DataError if some are missing then."""
    pictures = request.pictures()
    todo, count = request.missing_pictures(pictures), len(pictures)
    folder, sizes = request.pictures_folder, _sizes(request)
    unrecorded = pictures.keys() - todo.keys() - known.keys()  # of a call that was killed
    known |= {name: checked_sha256(folder / name, "") for name in unrecorded}
    failures, gone, given_up = dict[str, Refused](), dict[str, Refused](), threading.Event()

    def fetch_one(name: str) -> str:
        source, number = todo[name]
        check = partial(_check_picture, size=sizes.get(number))
        addresses = () if given_up.is_set() else [url.format(id=number) for url in source.urls]
        return first_success(addresses, lambda url: download(url, folder / name, None, known.get(name, ""), check))

    with progress.task("pictures", count, "pictures", done=count - len(todo)) as advance:
        for name, result in _in_threads(fetch_one, [*todo]):
            if isinstance(result, Refused):
                (gone if result.gone else failures)[name] = result
            elif isinstance(result, Exception):
                raise result
            else:
                known[name] = result
            if len(failures) >= MOST_FAILURES or len(gone) > count // 20 + 1:
                given_up.set()
            advance()
    if given_up.is_set():
        failures |= gone
    elif gone:
        known |= dict.fromkeys(gone, GONE)
        progress.say(f"{folder}: {len(gone)} of {count:,} pictures no longer exist: {', '.join(sorted(gone)[:3])}")
    if failures:
        left, reason = sum(not (folder / name).is_file() for name in todo), next(iter(failures.values()))
        raise DataError(
            f"{folder}: {left:,} of {count:,} pictures are missing: {reason}; run the same command again later, put "
            f"pictures there by hand, or go on without the missing ones: `{request.command} --leave-out-missing`"
        )


def _in_threads(work: Callable[[str], Result], names: Sequence[str]) -> Iterator[tuple[str, Result | Exception]]:
    """What `work` returns or raises for every name, as it ends. A process that is stopped does not wait for the
    threads: what they do must be right whenever it ends."""
    waiting, results = [*names], queue.SimpleQueue[tuple[str, Result | Exception]]()

    def loop() -> None:
        with contextlib.suppress(IndexError):
            while True:
                name = waiting.pop()
                try:
                    results.put((name, work(name)))
                except Exception as error:
                    results.put((name, error))

    for _ in range(min(CONNECTIONS, len(names))):
        threading.Thread(target=loop, daemon=True).start()
    try:
        for _ in names:
            yield results.get()
    finally:
        waiting.clear()


def _sizes(request: Request) -> dict[int, tuple[int, int]]:
    """Number of a picture -> width and height, as far as the set's files know them. Raises DataError."""
    paths = {request.folder / source.sizes_in for source in request.source.pictures if source.sizes_in}
    try:
        rows = [row for path in paths for _, row in validated(raw_rows(path, "images"), SizedPicture)]
    except DataError as error:
        raise DataError(f"{error}; delete the file, and run the same command again") from None
    return {row.id: (row.width, row.height) for row in rows if row.width}


def _check_picture(part: Path, size: tuple[int, int] | None) -> None:
    """Raises Refused for a file that is not a picture, or one of another size."""
    try:
        image = open_image(part)
    except DataError as error:
        raise Refused(str(error)) from None
    if size and sorted(image.size) != sorted(size):
        raise Refused("has {} x {} pixels, expected {} x {}".format(*image.size, *size))
