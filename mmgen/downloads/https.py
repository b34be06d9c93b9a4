"""Files from servers: resumed where a connection broke, tried again with patience, checked before they get their names.

Only https, and http on this machine's loopback, which tests use.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeVar

from .. import __version__
from ..errors import DataError
from ..files import write_errors

TIMEOUT = 30.0  # seconds without a byte
TRIES = 6  # failures in a row that bring no byte
BACKOFF = 0.5  # seconds before the second try; doubled each time
LONGEST_WAIT = 120.0  # seconds that a server may ask for
CHUNK = 1 << 20
BUSY = (408, 425, 429)  # statuses to try again, beside those from 500 on
GONE = (404, 410)
FAULTS = (OSError, ValueError, http.client.HTTPException)  # ValueError: a redirect to something that is not an address
NO_PAGE = rb"(?is)(?!(\xef\xbb\xbf)?\s*<(!doctype |html))."
STARTS = {  # of files by their endings; other files must not be empty, nor web pages
    ".zip": rb"PK",
    ".jpg": rb"\xff\xd8|\x89PNG",
    ".json": rb"(\xef\xbb\xbf)?\s*[\[{]",
    ".bin": rb"(?s).{,63}[^\t\r\n -~]",  # not a text
}

At = Callable[[int], object]  # gets how many bytes have arrived since its last call
Value = TypeVar("Value")


class Refused(DataError):
    """An address that does not give the file. `gone`: it says that it has no such file."""

    def __init__(self, reason: str, gone: bool = False) -> None:
        super().__init__(" ".join(reason.split()))
        self.gone = gone


class NoRanges(Refused):
    """A server that sends whole files only."""


class Broken(Exception):
    """A failure that may pass. `wait`: seconds that the server asks for."""

    wait = 0.0


def _patiently(attempt: Callable[[], Value], arrived: Callable[[], int] = int) -> Value:
    """Repeat what raises Broken, until `TRIES` tries in a row have failed without a new byte. `arrived` counts the
    bytes. Raises Refused."""
    failures = furthest = 0
    while True:
        try:
            return attempt()
        except Broken as error:
            problem = error
        position = arrived()
        failures, furthest = 1 if position > furthest else failures + 1, max(position, furthest)
        if problem.wait > LONGEST_WAIT:
            raise Refused(f"{problem} (asks to wait {problem.wait:.0f} seconds)")
        if failures == TRIES:
            raise Refused(f"{problem} ({TRIES} tries failed)")
        time.sleep(problem.wait or BACKOFF * 2 ** (failures - 1) * random.uniform(0.5, 1))


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *request: Any) -> Any:
        _check_scheme(request[-1])
        return super().redirect_request(*request)


OPENER = urllib.request.build_opener(_OnlyHttps)


def download(
    url: str,
    path: Path,
    size: int | None = None,
    sha256: str = "",
    check: Callable[[Path], object] = lambda part: None,
    at: At = lambda count: None,
) -> str:
    """Download an address to `path`, going on with what an earlier call left in `path.part`. Returns the SHA-256.

    size, sha256  what the file must have, as far as known
    check         called with the complete file before it gets its name; may raise Refused

    Raises Refused; RunError if the file cannot be written.
    """
    part = path.with_name(f"{path.name}.part")
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _patiently(lambda: _continue(url, part, size, at), lambda: part.stat().st_size if part.exists() else 0)
        try:
            digest = checked_sha256(part, sha256)
            check(part)
        except Refused:
            _discard(part)
            raise
        part.replace(path)
        _discard(part)
    return digest


def _continue(url: str, part: Path, size: int | None, at: At) -> None:
    """One try. Raises Broken, Refused."""
    note = part.with_name(f"{part.name}.txt")
    known = note.read_text() if note.exists() and part.exists() else ""
    start = part.stat().st_size if known else 0
    with _open(url, f"{start}-" if start else "", known, part) as response:
        total, etag = response.length, response.headers["ETag"] or ""
        _check_start(response)
        if response.status == 206:
            first, _, total = _content_range(response)
            if (first, etag or known) != (start, known):
                _discard(part)
                raise Broken("sent a range of another file")
        check_size(total, size)
        chunks = _chunks(response)
        first_chunk = next(chunks, b"")
        if response.status != 206:  # the server ignores ranges, or the file has changed
            _check_start(response, first_chunk, STARTS.get(Path(part.stem).suffix, NO_PAGE))
            if (total or size) is None and not response.chunked:
                raise Refused("the server does not say how long the file is, so nobody would notice that it is cut")
            part.unlink(missing_ok=True)
            note.write_text(etag * etag.startswith('"'))  # only a strong one says that no byte has changed
        with part.open("ab") as file:
            for chunk in chain([first_chunk], chunks):
                file.write(chunk)
                at(len(chunk))
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
    if end != (size or total or end):
        raise Broken(f"the connection broke off after {end:,} of {size or total:,} bytes")


def copy_range(url: str, span: str, target: IO[bytes], at: At) -> int:
    """Copy a part of a file, such as "0-99", or "-100" for its end, to the same place in `target`. Returns the size of
    the file. Raises NoRanges, Refused."""

    def attempt() -> int:
        with _open(url, span) as response:
            _check_start(response)
            if response.status != 206:
                raise NoRanges("sends whole files only")
            first, last, total = _content_range(response)
            content = b"".join(_chunks(response))
        if len(content) != last + 1 - first:
            raise Broken("sent other bytes than it says")
        target.truncate(total)
        target.seek(first)
        target.write(content)
        at(len(content))
        return total

    return _patiently(attempt)


def checked_sha256(path: Path, expected: str) -> str:
    """The SHA-256 of a file, in hexadecimal digits. Raises Refused unless it is `expected`, if that is known."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if expected not in ("", digest):
        raise Refused(f"SHA-256 is {digest[:12]}..., expected {expected[:12]}...; this is another file")
    return digest


def _open(url: str, span: str, etag: str = "", part: Path | None = None) -> Any:
    """The response to a request for a file, or for a range of it ("100-"). Raises Broken, Refused."""
    _check_scheme(url)
    headers = {"User-Agent": f"mmgen/{__version__}", "Accept-Encoding": "identity"}
    headers |= {"Range": f"bytes={span}"} if span else {}
    headers |= {"If-Range": etag} if etag else {}
    try:
        return OPENER.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        reason = f"the server says {error.code} {error.reason}"
        if error.code == 416 and part:
            _discard(part)
        elif error.code < 500 and error.code not in BUSY:
            raise Refused(reason, gone=error.code in GONE) from None
        broken, wait = Broken(reason), error.headers["Retry-After"] or ""  # seconds; a date is not read
        broken.wait = float(wait) if wait.isdecimal() else 0.0
        raise broken from None
    except FAULTS as error:
        raise Broken(getattr(error, "reason", None) or str(error) or type(error).__name__) from None


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read(CHUNK):
            yield chunk
    except FAULTS as error:
        raise Broken(f"the connection broke off: {error or type(error).__name__}") from None


def _check_scheme(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
        raise Refused(f"{url}: only https is used")


def check_size(total: int | None, size: int | None) -> None:
    if None not in (size, total) and size != total:
        raise Refused(f"has {total:,} bytes, expected {size:,}; the file at this address has changed")


def _check_start(response: Any, first: bytes = b"", pattern: bytes = b"") -> None:
    """Raises Refused if a response is not the file: `first` are its first bytes, which match `pattern`."""
    if response.status not in (200, 206):
        raise Refused(f"the server says {response.status} {response.reason}, and sends no file")
    if (encoding := response.headers.get("Content-Encoding", "identity")) != "identity":
        raise Refused(f"the server sent the file in another form ({encoding}) than was requested")
    if response.headers.get_content_type() == "text/html":
        raise Refused("the server sent a web page, not the file; its address has probably changed")
    if not re.match(pattern, first):
        raise Refused(f"the server sent something else than the file: {first[:60].decode(errors='replace')!r}")


def _content_range(response: Any) -> list[int]:
    """The first and the last byte of a range, and the size of the file. Raises Broken."""
    if not (numbers := re.fullmatch(r"bytes (\d+)-(\d+)/(\d+)", response.headers["Content-Range"] or "")):
        raise Broken("does not say which bytes it sends")
    return [*map(int, numbers.groups())]


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    part.with_name(f"{part.name}.txt").unlink(missing_ok=True)
