"""Fetches a published set into a folder: its files, its pictures, and a record of them, `downloads.json`."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..configs import Download
from ..errors import DataError
from ..features.images import open_image
from ..files import clear_partials, locked, read_table, write_json
from ..progress import Advance, Progress, table
from ..reading.text import parse_json, read_text
from .archives import unpack, unpack_remote
from .https import At, NoRanges, Refused, download, first_success
from .sources import SourceFile, SourcePictures, SourceSet

RECORD = "downloads.json"
CONNECTIONS = 8
GONE = "gone"  # in the record, in place of the SHA-256 of a picture that is not asked for again
MOST_FAILURES = 25  # pictures; if fewer than those that fail have arrived then, the others are not tried
Picture = tuple[SourcePictures, int]  # its source and number
Row = tuple[str, int | None, str]  # files, bytes or None, host


@dataclass(frozen=True, kw_only=True)
class Request(Download):
    """A set to fetch, of whose files some may be there."""

    source: SourceSet

    @property
    def record(self) -> dict[str, Any]:
        """What was fetched: {"licences": {licence: date}, "files": {name: {url, sha256}}, "pictures": {name:
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
        rows = [(", ".join(file.targets), file.estimate or file.bytes, file.host) for file in self.missing_files()]
        if self.images is not None and (sources := self.source.pictures):
            listed = all((self.folder / name).exists() for source in sources for name in source.listed_in)
            most = min(sum(source.count for source in sources), self.limit or 1 << 60)
            count = len(self.missing_pictures(self.pictures())) if listed else most
            rows += [(f"{count:,} pictures", count * sources[0].mean_bytes, sources[0].host)] * bool(count)
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
    """Fetch a file. Returns its part of the record. Raises DataError."""
    size, trusted = file.estimate or file.bytes, {name: known[name]["sha256"] for name in file.targets if name in known}

    def attempt(url: str) -> dict[str, Any]:
        with progress.task(file.targets[0], size and size // 1000, "kB") as advance:
            digests = _fetch_from(url, file, folder, trusted, lambda count: advance(count // 1000))
        return {name: {"url": url, "sha256": sha256} for name, sha256 in digests.items()}

    try:
        return first_success(file.urls, attempt)
    except Refused as error:
        dead = "".join(f"; {url} is dead since {since}" for url, since in file.dead.items())
        advice = "run the same command again later, or put the file there by hand"
        raise DataError(f"{folder / file.targets[0]}: cannot be fetched: {error}{dead}; {advice}") from None


def _fetch_from(url: str, file: SourceFile, folder: Path, trusted: Mapping[str, str], at: At) -> dict[str, str]:
    """Fetch a file from one address. Returns name -> SHA-256 of what was transferred: the member, the file, or the
    archive with it. `trusted`: the same of an earlier call. Raises Refused."""
    first = file.targets[0]
    if file.ranges:
        with contextlib.suppress(NoRanges):
            members = {name: sha256 or trusted.get(name, "") for name, sha256 in file.members.items()}
            return unpack_remote(url, file.bytes, members, folder, at)
    path = folder / (f".{Path(urlsplit(url).path).name}" if file.members else first)
    digest = download(url, path, file.bytes, file.sha256 or trusted.get(first, ""), at=at)
    if file.members:
        try:
            with path.open("rb") as archive:
                unpack(archive, file.members, folder)
        finally:
            path.unlink()
    return dict.fromkeys(file.targets, digest)


def _fetch_pictures(request: Request, known: dict[str, str], progress: Progress) -> None:
    """Fetch the pictures, several at a time. `known` gets their SHA-256. Raises DataError if some are missing then."""
    pictures = request.pictures()
    todo, count = request.missing_pictures(pictures), len(pictures)
    folder, sizes, names = request.pictures_folder, _sizes(request), iter([*todo])
    arrived, failures, stopped = dict[str, str](), dict[str, Exception](), threading.Event()

    def fetch_one(name: str) -> str:
        source, number = todo[name]
        check, addresses = (
            partial(_check_picture, size=sizes.get(number)),
            (url.format(id=number) for url in source.urls),
        )
        return first_success(addresses, lambda url: download(url, folder / name, None, known.get(name, ""), check))

    def work(advance: Advance) -> None:
        for name in names:
            if stopped.is_set():
                return
            try:
                arrived[name] = fetch_one(name)
            except Exception as error:
                failures[name] = error
                if len(arrived) < len(failures) >= MOST_FAILURES:
                    stopped.set()
            advance()

    with progress.task("pictures", count, "pictures", done=count - len(todo)) as advance:
        threads = [threading.Thread(target=work, args=[advance], daemon=True) for _ in range(CONNECTIONS)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:  # Ctrl-C does not wait for a server that hangs; a file gets its name when it is complete
            given_up = stopped.is_set()
            stopped.set()
            known |= arrived
    gone = [name for name, error in failures.items() if getattr(error, "gone", False) and not given_up]
    if gone:
        known |= dict.fromkeys(gone, GONE)
        progress.say(f"{folder}: {len(gone)} of {count:,} pictures no longer exist: {', '.join(sorted(gone)[:3])}")
    if len(gone) < len(failures):
        left = sum(not (folder / name).is_file() for name in todo)
        reason = next(error for name, error in failures.items() if name not in gone)
        raise DataError(
            f"{folder}: {left:,} of {count:,} pictures are missing: {reason}; run the same command again later, put "
            f"pictures there by hand, or go on without the missing ones: `{request.command} --leave-out-missing`"
        ) from reason


def _sizes(request: Request) -> dict[int, tuple[int, int]]:
    """Number of a picture -> width and height, as far as the set's files know them. Raises DataError."""
    sizes: dict[int, tuple[int, int]] = {}
    for path in {request.folder / source.sizes_in for source in request.source.pictures if source.sizes_in}:
        try:
            rows = parse_json(read_text(path), path)["images"]
            sizes |= {row["id"]: (row["width"], row["height"]) for row in rows if "width" in row}
        except (DataError, LookupError, TypeError):
            raise DataError(f"{path}: is damaged; delete it, and run the same command again") from None
    return sizes


def _check_picture(part: Path, size: tuple[int, int] | None) -> None:
    """Raises Refused for a file that is not a picture, or one of another size."""
    try:
        image = open_image(part)
    except DataError as error:
        raise Refused(str(error)) from None
    if size and sorted(image.size) != sorted(size):
        raise Refused("has {} x {} pixels, expected {} x {}".format(*image.size, *size))
