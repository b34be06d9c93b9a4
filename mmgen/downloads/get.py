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

from ..configs import Download
from ..errors import DataError
from ..features.images import open_image
from ..files import clear_partials, locked, read_table, write_json
from ..progress import Advance, Progress, table
from ..reading.text import parse_json, read_text
from .archives import unpack, unpack_remote
from .https import At, NoRanges, Refused, download
from .sources import SourceFile, SourceSet

RECORD = "downloads.json"
CONNECTIONS = 8
GONE = "gone"  # in the record, in place of the SHA-256 of a picture that is not asked for again
MOST_FAILURES = 25  # files; if fewer than those that fail have arrived then, the others are not tried
Row = tuple[str, int | None, str]  # files, bytes or None, host
Sizes = Mapping[str, tuple[int, int]]  # file name of a picture -> width and height


@dataclass(frozen=True, kw_only=True)
class Request(Download):
    """A set to fetch, of whose files some may be there."""

    source: SourceSet

    @property
    def record(self) -> dict[str, Any]:
        """What was fetched: {"licences": {licence: date}, "files": {name: SHA-256 or GONE}}, the SHA-256 of what was
        transferred, which for a member may be its archive."""
        path = self.folder / RECORD
        return read_table(path, licences=dict, files=dict) if path.exists() else {"licences": {}, "files": {}}

    def missing_of(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        """Those of these files that are neither there nor to be left out."""
        known, folder = self.record["files"], self.folder

        def has(name: str) -> bool:  # not all that match a pattern may be there until the record has it
            return (
                name in known and any(folder.glob(name))
                if "*" in name
                else known.get(name) == GONE or (folder / name).is_file()
            )

        return [file for file in files if not all(map(has, file.targets))]

    def pictures(self) -> list[SourceFile]:
        """The pictures to have. The files that list them must be there."""
        listed = {
            source.name.format(id=int(match[1])): [url.format(id=int(match[1])) for url in source.urls]
            for source in self.source.pictures
            for name in source.listed_in
            for match in re.finditer(source.pattern, read_text(self.folder / name))
        }
        names = sorted(listed, key=lambda name: hashlib.sha256(name.encode()).digest())[: self.limit]
        size = self.source.pictures[0].mean_bytes if names else None
        return [SourceFile(urls=listed[name], name=f"{self.images}/{name}", estimate=size) for name in names]

    def missing(self) -> list[Row]:
        """What is to be fetched."""
        files = self.missing_of(self.source.files)
        rows = [(", ".join(file.targets), file.estimate or file.bytes, file.host) for file in files]
        if self.images is not None and (sources := self.source.pictures):
            listed = all((self.folder / name).exists() for source in sources for name in source.listed_in)
            most = min(sum(source.count for source in sources), self.limit or 1 << 60)
            count = len(self.missing_of(self.pictures())) if listed else most
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
        form = self.source.form.format(folder=self.folder, images=self.folder / (self.images or "images"))
        return "\n".join([*lines, *[f"  by hand: {form}"] * bool(form)])

    def leave_out_missing(self) -> None:
        """Record the missing pictures as gone, so that a run goes on with the others."""
        record = self.record
        record["files"] |= {picture.name: GONE for picture in self.missing_of(self.pictures())}
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
            _fetch_all(request, request.source.files, record["files"], progress)
            if request.images is not None:
                _fetch_all(request, request.pictures(), record["files"], progress, _sizes(request))
        finally:
            write_json(folder / RECORD, record)


def _fetch_all(
    request: Request, files: Sequence[SourceFile], known: dict[str, str], progress: Progress, sizes: Sizes | None = None
) -> None:
    """Fetch these files, several at a time. `known` gets their SHA-256. `sizes`: if they are pictures, as far as known.
    Raises DataError if some are missing then."""
    todo = request.missing_of(files)
    waiting, arrived, failures, stopped = iter(todo), dict[str, str](), dict[str, Exception](), threading.Event()

    def work(advance: Advance) -> None:
        for file in waiting:
            if stopped.is_set():
                return
            try:
                arrived.update(_fetch_one(file, request.folder, known, sizes, lambda count: advance(count // 1000)))
            except Exception as error:
                failures[file.targets[0]] = error
                if len(arrived) < len(failures) >= MOST_FAILURES:
                    stopped.set()

    total = sum(file.estimate or file.bytes or 0 for file in todo) // 1000
    with progress.task(request.name, total or None, "kB") as advance:
        threads = [threading.Thread(target=work, args=[advance], daemon=True) for _ in range(CONNECTIONS)]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:  # Ctrl-C does not wait for a server that hangs; a file gets its name when it is complete
            most_came = not stopped.is_set() and len(failures) <= len(files) // 20 + 1
            stopped.set()
            known |= arrived
    gone = [
        name for name, error in failures.items() if most_came and sizes is not None and getattr(error, "gone", False)
    ]
    if gone:
        known |= dict.fromkeys(gone, GONE)
        progress.say(f"{request.folder}: {len(gone)} of {len(files):,} pictures no longer exist, such as {gone[0]}")
    left = [file for file in todo if not {*file.targets} & {*arrived, *gone}]
    if left:
        name, reason = next((name, error) for name, error in failures.items() if name not in gone)
        dead = (f"; {url} is dead since {since}" for file in left for url, since in file.dead.items())
        leave_out = f", or go on without them: `{request.command} --leave-out-missing`" * (sizes is not None)
        raise DataError(
            f"{request.folder}: {len(left):,} of {len(files):,} files are missing: {name}: {reason}{''.join(dead)}; "
            f"run the same command again later, or put files there by hand{leave_out}"
        ) from reason


def _fetch_one(file: SourceFile, *options: Any) -> dict[str, str]:
    """Fetch a file from the first address that has it. `options`: see below. Raises Refused."""
    reasons, gone = list[str](), True
    for url in file.urls:
        try:
            return _fetch_from(url, file, *options)
        except Refused as error:
            reasons.append(f"{url}: {error}")
            gone &= error.gone
    raise Refused("; ".join(reasons), gone)


def _fetch_from(
    url: str, file: SourceFile, folder: Path, known: Mapping[str, str], sizes: Sizes | None, at: At
) -> dict[str, str]:
    """Fetch a file from one address. Returns its part of the record: where a server without ranges sent the archive of
    a member, no SHA-256. Raises Refused."""
    if file.ranges:
        with contextlib.suppress(NoRanges):
            members = {name: sha256 or known.get(name, "") for name, sha256 in file.members.items()}
            return unpack_remote(url, file.bytes, members, folder, at)
    first = file.targets[0]
    path = folder / (f".{Path(first).name}.zip" if file.members else first)
    digest = download(url, path, file.bytes, file.sha256 or known.get(first, ""), partial(_check_picture, sizes), at)
    if file.members:
        try:
            with path.open("rb") as archive:
                unpack(archive, file.members, folder)
        finally:
            path.unlink()
    return dict.fromkeys(file.targets, "" if file.ranges else digest)


def _sizes(request: Request) -> Sizes:
    """The sizes of pictures, as far as the set's files know them. Raises DataError."""
    sizes: dict[str, tuple[int, int]] = {}
    for path in {request.folder / source.sizes_in for source in request.source.pictures if source.sizes_in}:
        try:
            rows = parse_json(read_text(path), path)["images"]
            sizes |= {row["file_name"]: (row["width"], row["height"]) for row in rows}
        except (DataError, LookupError, TypeError):
            raise DataError(f"{path}: is damaged; delete it, and run the same command again") from None
    return sizes


def _check_picture(sizes: Sizes | None, part: Path) -> None:
    """Raises Refused for a file that is not the picture that it should be, by its format or its known size."""
    if sizes is None:
        return
    try:
        image = open_image(part)
    except DataError as error:
        raise Refused(str(error)) from None
    size = sizes.get(part.stem, image.size)
    if sorted(image.size) != sorted(size):
        raise Refused("has {} x {} pixels, expected {} x {}".format(*image.size, *size))
