"""Files from servers: resumed where a connection broke, tried again with patience, checked before they get their names.

Only https, and http on this machine's loopback, which tests use.
"""

from __future__ import annotations

import contextlib
import email.utils
import hashlib
import http.client
import io
import json
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
from typing import Any

from .. import __version__
from ..errors import DataError
from ..files import write_errors, write_json

TIMEOUT = 30.0  # seconds without a byte
TRIES = 6  # failures in a row that bring no byte
BACKOFF = 0.5  # seconds before the second try; doubled each time
LONGEST_WAIT = 120.0  # seconds that a server may ask for
CHUNK = 1 << 20
BUSY = (408, 425, 429)  # statuses to try again, beside those from 500 on
GONE = (403, 404, 410)  # stores that list nothing say 403 for what they lack

At = Callable[[int], object]  # gets how many bytes of a file are there


class Refused(DataError):
    """An address that does not give the file. `gone`: it says that it has no such file."""

    def __init__(self, reason: str, gone: bool = False) -> None:
        super().__init__(reason)
        self.gone = gone


class NoRanges(Refused):
    """A server that sends whole files only."""


class Broken(Exception):
    """A failure that may pass. `wait`: seconds that the server asks for."""

    def __init__(self, reason: object, wait: float = 0.0) -> None:
        super().__init__(reason)
        self.wait = wait


class Patience:
    """Waits between tries, and gives up after `TRIES` failures without a new byte."""

    def __init__(self) -> None:
        self.failures, self.furthest = 0, 0

    def wait(self, error: Broken, position: int) -> None:
        """`position`: the bytes that have arrived. Raises Refused."""
        self.failures = 1 if position > self.furthest else self.failures + 1
        self.furthest = max(position, self.furthest)
        if self.failures == TRIES or error.wait > LONGEST_WAIT:
            later = f"asks to wait {error.wait:.0f} seconds" if error.wait > LONGEST_WAIT else f"{TRIES} tries failed"
            raise Refused(f"{error} ({later})") from None
        time.sleep(error.wait or BACKOFF * 2 ** (self.failures - 1) * random.uniform(0.5, 1))


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_scheme(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


OPENER = urllib.request.build_opener(_OnlyHttps)


def download(
    url: str,
    path: Path,
    size: int | None = None,
    sha256: str = "",
    check: Callable[[Path], object] = lambda part: None,
    at: At = lambda position: None,
) -> str:
    """Download an address to `path`, going on with what an earlier call left in `path.part`. Returns the SHA-256.

    size, sha256  what the file must have, as far as known
    check         called with the complete file before it gets its name; may raise Refused

    Raises Refused; RunError if the file cannot be written.
    """
    part, patience = path.with_name(f"{path.name}.part"), Patience()
    with write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            try:
                _continue(url, part, size, sha256, at)
                break
            except Broken as error:
                patience.wait(error, part.stat().st_size if part.exists() else 0)
        try:
            digest = file_sha256(part)
            if sha256 not in ("", digest):
                raise Refused(f"SHA-256 is {digest[:12]}..., expected {sha256[:12]}...; this is another file")
            check(part)
        except Refused:
            _discard(part)
            raise
        part.replace(path)
        _discard(part)
    return digest


def _continue(url: str, part: Path, size: int | None, sha256: str, at: At) -> None:
    """One try. Raises Broken, Refused."""
    note = part.with_name(f"{part.name}.json")
    known: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError):
        known = json.loads(note.read_text())
    same = known.get("url") == url and (known.get("validator") or sha256)
    start = part.stat().st_size if same and part.exists() else 0
    if start and start == known.get("size"):
        return  # stopped between its last byte and its name
    with _open(url, start, validator=known.get("validator", "") if start else "", part=part) as response:
        length, validator = response.headers["Content-Length"], _validator(response)
        total = int(length) if length else None
        if response.status == 206:
            first, total = _content_range(response)
            if first != start or validator not in ("", known.get("validator")) or total != known.get("size", total):
                _discard(part)
                raise Broken("sent a range of another file")
        else:  # the whole file: the server ignores ranges, or the file has changed
            start = 0
        _check_size(total, size)
        chunks = _chunks(response)
        first_chunk = next(chunks, b"")
        if not start:
            _refuse_page(response, first_chunk)
            part.unlink(missing_ok=True)
            write_json(note, {"url": url, "validator": validator, "size": total})
        with part.open("ab") as file:
            for chunk in chain([first_chunk], chunks):
                file.write(chunk)
                at(file.tell())
            file.flush()
            os.fsync(file.fileno())
            end = file.tell()
    if end != (size or total or end):
        raise Broken(f"the connection broke off after {end:,} of {size or total:,} bytes")


class RemoteFile(io.RawIOBase):
    """A file on a server, read by ranges: for the members of an archive. Raises NoRanges, Refused."""

    def __init__(self, url: str, size: int | None = None) -> None:
        self.url, self.position, self.validator = url, 0, ""
        _, self.size = self._fetch(0, 0)
        _check_size(self.size, size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + (0, self.position, self.size)[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: Any) -> int:
        end = min(self.position + len(buffer), self.size)
        if end <= self.position:
            return 0
        content, _ = self._fetch(self.position, end - 1)
        buffer[: len(content)] = content
        self.position = end
        return len(content)

    def _fetch(self, first: int, last: int) -> tuple[bytes, int]:
        """These bytes, and the size of the file."""
        patience = Patience()
        while True:
            try:
                with _open(self.url, first, last, self.validator) as response:
                    if response.status != 206:
                        _refuse_page(response, b"")
                        raise NoRanges("sends whole files only")
                    content = b"".join(_chunks(response))
                    start, total = _content_range(response)
                    if (start, len(content)) != (first, last + 1 - first):
                        raise Broken("sent other bytes than were requested")
                    self.validator = self.validator or _validator(response)
                    return content, total
            except Broken as error:
                patience.wait(error, 0)


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _open(url: str, first: int = 0, last: int | None = None, validator: str = "", part: Path | None = None) -> Any:
    """The response to a request for a file, or for a range of it. Raises Broken, Refused."""
    _check_scheme(url)
    headers = {"User-Agent": f"mmgen/{__version__}", "Accept-Encoding": "identity"}
    if first or last is not None:
        headers["Range"] = f"bytes={first}-{'' if last is None else last}"
        headers |= {"If-Range": validator} if validator else {}
    try:
        return OPENER.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        reason = f"the server says {error.code} {error.reason}"
        if error.code == 416 and part:
            _discard(part)
        elif error.code < 500 and error.code not in BUSY:
            raise Refused(reason, gone=error.code in GONE) from None
        raise Broken(reason, _retry_after(error.headers["Retry-After"] or "")) from None
    except ValueError as error:  # a redirect to what is no address
        raise Refused(str(error)) from None
    except (OSError, http.client.HTTPException) as error:
        raise Broken(getattr(error, "reason", None) or str(error) or type(error).__name__) from None


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read(CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise Broken(f"the connection broke off: {error or type(error).__name__}") from None


def _check_scheme(url: str) -> None:
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
        raise Refused(f"{url}: only https is used")


def _check_size(total: int | None, size: int | None) -> None:
    if None not in (size, total) and size != total:
        raise Refused(f"has {total:,} bytes, expected {size:,}; the file at this address has changed")


def _refuse_page(response: Any, first: bytes) -> None:
    if response.headers.get_content_type() == "text/html" or re.match(
        rb"(\xef\xbb\xbf)?\s*<(!doctype )?html", first[:99], re.I
    ):
        raise Refused("the server sent a web page, not the file; its address has probably changed")


def _validator(response: Any) -> str:
    """What `If-Range` names: a strong ETag, or a date."""
    etag = response.headers["ETag"] or ""
    return etag if etag.startswith('"') else response.headers["Last-Modified"] or ""


def _content_range(response: Any) -> tuple[int, int]:
    """The first byte of a range, and the size of the file. Raises Broken."""
    if not (numbers := re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers["Content-Range"] or "")):
        raise Broken("does not say which bytes it sends")
    return int(numbers[1]), int(numbers[2])


def _retry_after(text: str) -> float:
    """Seconds; 0 if a server asks for none."""
    if text.isdecimal():
        return float(text)
    with contextlib.suppress(ValueError, TypeError):
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    return 0.0


def _discard(part: Path) -> None:
    part.unlink(missing_ok=True)
    part.with_name(f"{part.name}.json").unlink(missing_ok=True)
