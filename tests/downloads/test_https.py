"""Downloads from a server with faults: whole and right, or one line that says what is wrong."""

import hashlib
import io
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kit.hosts import host, random_faults, zipped

from mmgen.downloads import https
from mmgen.downloads.archives import unpack, unpack_remote
from mmgen.downloads.https import NoRanges, Refused, download
from mmgen.errors import RunError

pytestmark = pytest.mark.slow

BODY = b"PK" + random.Random(0).randbytes(299_998)  # as archives and weights begin
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """Faults come at once."""
    monkeypatch.setattr(https, "BACKOFF", 0.001)
    monkeypatch.setattr(https, "TIMEOUT", 0.5)
    monkeypatch.setattr(https, "CHUNK", 1 << 16)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.parametrize(
    "faults",
    [
        *("", "cut", "cut,cut,cut", "busy,later", "reset", "hang", "cut,no_ranges", "cut,short_range", ",cut" * 12),
        *("chunked", "chunked cut", "chunked cut,cut,chunked"),
    ],
)
def test_a_passing_fault_costs_time_only(faults, tmp_path):
    with host({"/a": BODY}, faults.split(",")) as server:
        assert download(f"{server.url}/a", tmp_path / "a", None if "chunked" in faults else len(BODY)) == SHA
    assert (tmp_path / "a").read_bytes() == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert {headers["User-Agent"] for _, headers, _ in server.seen} == {f"mmgen/{https.__version__}"}


def test_a_file_that_changes_meanwhile_is_fetched_anew(tmp_path):
    """Never the first half of one version and the second half of another."""
    with host({"/a.bin": BODY}, ["cut", "changed"]) as server:
        download(f"{server.url}/a.bin", tmp_path / "a.bin")
        assert (tmp_path / "a.bin").read_bytes() == BODY + b"!"
    with host({"/a.bin": BODY}, ["cut", "changed"]) as server, pytest.raises(Refused, match="expected 300,000; the fi"):
        download(f"{server.url}/a.bin", tmp_path / "b.bin", len(BODY))


@pytest.mark.parametrize(
    ("fault", "size", "message"),
    [
        ("page", None, "sent a web page, not the file"),
        ("gone", None, "says 404"),
        ("forbidden", None, "says 403"),
        ("no content", None, "says 204 No Content, and sends no file"),
        ("limit", None, "sent something else than the file: 'rate limit exceeded'"),
        ("gzip", None, r"sent the file in another form \(gzip\)"),
        ("unsized cut", None, "does not say how long the file is"),
        ("wrong length", None, "does not say how long the file is"),
        ("unsized cut", 300_000, r"broke off after 299,999 of 300,000 bytes \(6 tries failed\)"),
        ("loop", None, "says 302 .* infinite loop. The last 30x error message was: Found"),
        ("busy", None, r"503 .*6 tries failed"),
        ("hang", None, r"timed out \(6 tries failed\)"),
        ("", 299_999, "has 300,000 bytes, expected 299,999"),
    ],
)
def test_an_address_that_does_not_give_the_file_is_refused_in_words(fault, size, message, tmp_path):
    with host({"/a.zip": BODY}, lambda path: fault) as server, pytest.raises(Refused, match=message) as error:
        download(f"{server.url}/a.zip", tmp_path / "a.zip", size)
    assert {*tmp_path.iterdir()} <= {tmp_path / "a.zip.part", tmp_path / "a.zip.part.txt"}
    assert "\n" not in str(error.value)


def test_another_file_of_the_same_size_is_refused(tmp_path):
    with host({"/a.bin": BODY}) as server, pytest.raises(Refused, match="SHA-256 is .*expected 0000"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin", len(BODY), "0" * 64)
    assert [*tmp_path.iterdir()] == []


def test_only_https_is_used_but_on_the_loopback(tmp_path):
    for url in ("http://images.cocodataset.org/a.bin", "ftp://a.org/a.bin", "file:///etc/passwd"):
        with pytest.raises(Refused, match="only https is used"):
            download(url, tmp_path / "a.bin")


def test_a_long_wait_is_left_to_the_person(tmp_path):
    with host({"/a.bin": BODY}, ["busy"], "3600") as server, pytest.raises(Refused, match="asks to wait 3600 seconds"):
        download(f"{server.url}/a.bin", tmp_path / "a.bin")


def test_a_full_disk_is_said_and_what_has_arrived_stays(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with host({"/a.bin": BODY}) as server:
        with monkeypatch.context() as patch, pytest.raises(RunError, match=r"a.bin: cannot be written: No space left"):
            patch.setattr(https.os, "fsync", full)
            download(f"{server.url}/a.bin", tmp_path / "a.bin")
        assert (tmp_path / "a.bin.part").stat().st_size == len(BODY)
        assert download(f"{server.url}/a.bin", tmp_path / "a.bin") == SHA


def test_a_killed_download_goes_on(tmp_path):
    """The process is killed with half of the file on the disk; the next one asks for the rest."""
    code = """
import os, signal, sys
from pathlib import Path
from mmgen.downloads import https
https.CHUNK = 50_000
arrived = []
def at(count):
    arrived.append(count)
    if sum(arrived) >= 150_000:
        os.kill(os.getpid(), signal.SIGKILL)
https.download(sys.argv[1], Path(sys.argv[2]), at=at)
"""
    with host({"/a.bin": BODY}) as server:
        arguments = [sys.executable, "-c", code, f"{server.url}/a.bin", str(tmp_path / "a.bin")]
        done = subprocess.run(arguments, env=os.environ | {"no_proxy": "127.0.0.1"}, check=False)
        assert done.returncode == -signal.SIGKILL and not (tmp_path / "a.bin").exists()
        arrived = (tmp_path / "a.bin.part").stat().st_size
        assert download(f"{server.url}/a.bin", tmp_path / "a.bin") == SHA
    assert server.seen[-1][1]["Range"] == f"bytes={arrived}-" and arrived >= 100_000


def test_members_are_read_by_ranges(tmp_path):
    content = zipped({"x/big.bin": BODY * 10, "x/a.json": b"[1]", "x/b.json": b"[2]", "__MACOSX/x/a.json": b"no"})
    with host({"/a.zip": content}, ["", "cut", "busy", "short_range"]) as server:
        digests = unpack_remote(f"{server.url}/a.zip", len(content), {"x/*.json": ""}, tmp_path, lambda count: None)
        transferred = sum(status == 206 for _, _, status in server.seen)
    assert [*digests] == ["x/*.json"] and [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x/a.json").read_bytes() == b"[1]" and (tmp_path / "x/b.json").read_bytes() == b"[2]"
    assert transferred == 5  # the end of the archive, two members, two of which were sent again


@pytest.mark.parametrize(
    ("faults", "size", "error", "message"),
    [
        (["no_ranges"], None, NoRanges, "sends whole files only"),
        (["", "page"], None, Refused, "sent a web page"),
        ([], 5, Refused, "expected 5; the file at this address has changed"),
        (["gzip"], None, Refused, "another form"),
        (["gone"], None, Refused, "says 404"),
    ],
)
def test_an_archive_that_cannot_be_read_by_ranges(faults, size, error, message, tmp_path):
    content = zipped({"big.bin": BODY * 10, "a.bin": BODY})
    with host({"/a.zip": content}, faults) as server, pytest.raises(error, match=message):
        unpack_remote(f"{server.url}/a.zip", size, {"a.bin": ""}, tmp_path, lambda count: None)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("../a.json",), "outside its folder"),
        (("x/../a.json",), "outside its folder"),
        (("x:/a.json",), "outside its folder"),
        (("x\\..\\a.json",), "has no '[*]/a.json'"),
        (("b.json",), "has no '[*]/a.json'"),
    ],
)
def test_nothing_is_written_outside_of_the_folder(names, message, tmp_path):
    archive = io.BytesIO(zipped(dict.fromkeys(names, b"[]")))
    with pytest.raises(Refused, match=message):
        unpack(archive, {"*/a.json": ""}, tmp_path / "inside")
    assert [*tmp_path.rglob("*.json")] == []


def test_a_damaged_member_and_another_one_are_refused(tmp_path):
    content = bytearray(zipped({"a.bin": BODY}))
    content[150_000] ^= 1
    with pytest.raises(Refused, match="damaged archive: Bad CRC-32|damaged archive: Error"):
        unpack(io.BytesIO(content), {"a.bin": ""}, tmp_path)
    with pytest.raises(Refused, match=r"SHA-256 is .*, expected 1111.*another file"):
        unpack(io.BytesIO(zipped({"a.bin": BODY})), {"a.bin": "1" * 64}, tmp_path)
    with pytest.raises(Refused, match="damaged archive: File is not a zip file"):
        unpack(io.BytesIO(b"<html>"), {"a.bin": ""}, tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_a_thousand_downloads_under_faults_end_whole_or_say_why(tmp_path, monkeypatch):
    """Whole and right under their names, or refused in one line and not there; never anything between."""
    monkeypatch.setattr(https, "TIMEOUT", 0.2)
    draw = random.Random(57)
    names = (f"/{number}{draw.choice(['.zip', '.json', '.jpg'])}" for number in range(1000))
    starts = {".zip": b"PK", ".json": b"[", ".jpg": b"\xff\xd8"}
    files = {name: starts[Path(name).suffix] + draw.randbytes(draw.randint(1, 3000)) for name in names}
    with host(files, random_faults(57)) as server:

        def fetch(path):
            number = int(Path(path).stem)  # half of them with a published hash, half of them with a size
            sha256 = hashlib.sha256(files[path]).hexdigest() if number % 2 else ""
            try:
                download(server.url + path, tmp_path / path[1:], len(files[path]) if number % 4 < 2 else None, sha256)
            except Refused as error:
                return str(error)
            return ""

        with ThreadPoolExecutor(8) as pool:
            outcomes = dict(zip(files, pool.map(fetch, files), strict=True))
    for path, error in outcomes.items():
        target = tmp_path / path[1:]
        assert target.exists() != bool(error) and "\n" not in error
        assert error or target.read_bytes() in (files[path], files[path] + b"!")  # which the server sends as changed
    assert 300 < sum(not error for error in outcomes.values()) < 1000
