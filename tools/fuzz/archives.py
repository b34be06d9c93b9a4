"""Fuzzing of archives: tar files of examples with pictures. A reader of the format's blocks checks each."""

from __future__ import annotations

import io
import json
import logging
import tarfile
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from . import mutations
from .harness import Surface

BLOCK = 512
FORMATS = (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)
FIELDS = {  # of a header: first byte, length
    "name": (0, 100),
    "mode": (100, 8),
    "size": (124, 12),
    "mtime": (136, 12),
    "type": (156, 1),
    "link": (157, 100),
    "magic": (257, 8),
    "prefix": (345, 155),
}
ODD_FIELDS = {
    "size": (b"0", b"1", b"777", b"77777777777", b"-1", b"8", b" 7 ", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"x", b""),
    "type": (b"0", b"\0", b"1", b"2", b"3", b"5", b"6", b"7", b"K", b"L", b"S", b"V", b"X", b"g", b"x", b"Z"),
}
ODD_NAMES = (
    "../../x.jpg",
    "/x.jpg",
    "a/b/c.d.e.json",
    ".txt",
    "",
    "b.txt",
    "é.json",
    "\x1b[2J.txt",
    "x" * 99,
    "a//b.JSON",
)
PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def surfaces() -> list[Surface]:
    return [Surface("archives", _prepare, _spoil, _read, _check)]


def _members() -> list[tuple[str, bytes]]:
    from PIL import Image

    members = []
    for number, color in enumerate(("red", "green", "blue")):
        out = io.BytesIO()
        Image.new("RGB", (5, 4), color).save(out, "PNG")
        about = {"caption": f"a {color} ball", "names": ["ball", color], "number": number}
        members += [
            (f"part/{number:04}.png", out.getvalue()),
            (f"part/{number:04}.json", json.dumps(about).encode()),
            (f"part/{number:04}.txt", f"What is {color}?\n".encode()),
        ]
    return members


def _prepare(folder: Path) -> Any:
    logging.getLogger("mmgen").setLevel(logging.ERROR)
    members = _members()
    long = [(f"{'folder/' * 20}{name}", content) for name, content in members]
    wholes = [pack(members, form) for form in FORMATS] + [pack(long, form) for form in FORMATS[1:]]
    return {"members": members, "wholes": wholes}


def pack(members: list[tuple[str, bytes]], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """A tar file with these members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, content in members:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            tar.addfile(about, io.BytesIO(content))
    return out.getvalue()


def _spoil(draw: Random, folder: Path, prepared: Any) -> Path:
    path = folder / "examples.tar"
    what = draw.random()
    if what < 0.3:
        members = list(prepared["members"])
        place = draw.randrange(len(members))
        name, content = members[place]
        if name.endswith(".json") and draw.random() < 0.8:
            content = mutations.json_(draw, json.loads(content)).encode("utf-8", "surrogatepass")
        elif draw.random() < 0.3:
            name = draw.choice(ODD_NAMES)
        else:
            content = mutations.bytes_(draw, content)
        members[place] = name, content
        if draw.random() < 0.2:
            draw.shuffle(members)
        path.write_bytes(pack(members))
        return path
    data = draw.choice(prepared["wholes"])
    if what < 0.6:
        data = mutations.bytes_(draw, data, prepared["wholes"])
    elif what < 0.7:
        data = _blocks(draw, data)
    else:
        for _ in range(draw.choice((1, 1, 2))):
            data = _field(draw, data)
    path.write_bytes(data)
    return path


def _blocks(draw: Random, data: bytes) -> bytes:
    """Whole blocks lost, doubled or moved."""
    blocks = [data[first : first + BLOCK] for first in range(0, len(data), BLOCK)]
    place = draw.randrange(min(len(blocks), 20))
    what = draw.randrange(4)
    if what == 0:
        del blocks[place]
    elif what == 1:
        blocks.insert(place, bytes(BLOCK))
    elif what == 2:
        blocks.insert(draw.randrange(len(blocks)), blocks[place])
    else:
        del blocks[place:]
    return b"".join(blocks)


def _field(draw: Random, data: bytes) -> bytes:
    """A header with another value and a right checksum."""
    places = [place for place in range(0, len(data), BLOCK) if data[place + 257 : place + 262] == b"ustar"]
    if not places:
        return data
    place, (name, (first, length)) = draw.choice(places), draw.choice(list(FIELDS.items()))
    header = bytearray(data[place : place + BLOCK])
    if name in ODD_FIELDS:
        value = draw.choice(ODD_FIELDS[name])
    elif draw.random() < 0.5:
        value = draw.choice(ODD_NAMES).encode()
    else:
        value = mutations.bytes_(draw, bytes(header[first : first + length]))
    header[first : first + length] = value[:length].ljust(length, b"\0")
    header[148:156] = b"        "
    header[148:156] = b"%06o\0 " % sum(header)
    return data[:place] + bytes(header) + data[place + BLOCK :]


def _read(path: Path, _) -> Any:
    """All examples, and the pictures of those that can be read."""
    from mmgen_streams import Archives

    from mmgen.errors import DataError

    dataset = Archives(train=str(path), columns={"caption": "caption", "names": "names"}).build()
    examples, pictures = dataset.split("train"), []
    for picture in dataset.pictures():
        try:
            pictures.append((picture.key, picture.load().size))
        except DataError:
            pictures.append((picture.key, None))
    return examples, pictures


def _check(path: Path, content: Any, _) -> None:
    examples, pictures = content
    data = path.read_bytes()
    samples = [
        (key, list(group)) for key, group in groupby(naive_members(data), key=lambda member: _key(member[0])[:1000])
    ]
    expected = []
    for key, members in samples:
        fields: dict[str, Any] = {}
        for name, first, size in members:
            ending, text = name[len(_key(name)) :].lower(), data[first : first + size]
            if ending == ".json":
                fields |= json.loads(text.decode("utf-8"))
            elif ending == ".txt":
                fields["txt"] = text.decode("utf-8").strip()
        inputs = {name: tuple(v) if isinstance(v := fields[name], list) else v for name in ("caption", "names")}
        targets = fields["txt"]
        expected.append((key, {"image": key, **inputs}, (targets,) if isinstance(targets, str) else tuple(targets)))
    actual = [(example.id, dict(example.inputs), example.targets) for example in examples]
    assert actual == expected, f"{actual} where the file has {expected}"
    shown = [
        (key, next(((n, f, s) for n, f, s in members if n.lower().endswith(PICTURES)), None))
        for key, members in samples
    ]
    assert [key for key, _ in pictures] == [key for key, member in shown if member], "other pictures"
    for (key, size), (_, member) in zip(pictures, [pair for pair in shown if pair[1]], strict=True):
        assert size is None or member and size == _size(data[member[1] : member[1] + member[2]]), f"picture {key}"


def _size(data: bytes) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.size


def _key(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return f"{folder}{slash}{last.partition('.')[0]}"


def naive_members(data: bytes) -> list[tuple[str, int, int]]:
    """Name, first byte and size of the files of an archive, from its blocks; folders are left out. An archive ends with
    two blocks of zeros, or with the file."""
    members, place = [], 0
    while place < len(data):
        header = data[place : place + BLOCK]
        if not header.strip(b"\0"):
            assert not data[place : place + 2 * BLOCK].strip(b"\0"), f"the archive goes on behind byte {place}"
            break
        kind, stated = header[156:157], _number(header[148:156])
        sums = (
            sum(signed if signed < 128 or plain else signed - 256 for signed in header[:148] + header[156:])
            for plain in (True, False)
        )
        assert len(header) == BLOCK and stated in [total + 8 * 32 for total in sums], f"no header at byte {place}"
        if kind not in b"\0001234567":
            return _extended(data)
        name, prefix, size = (_text(header[:100]), _text(header[345:500]), _number(header[124:136]))
        is_folder = kind == b"5" or kind == b"\0" and name.endswith("/")
        name = f"{prefix}/{name}" if prefix else name
        name = name.rstrip("/") if is_folder else name
        place += BLOCK
        if not is_folder:
            members.append((name, place, size))
        if kind in b"\0" + b"07" and not is_folder:
            place += -(-size // BLOCK) * BLOCK
    return members


def _extended(data: bytes) -> list[tuple[str, int, int]]:
    """The same of an archive with long names and other extensions, by Python's reader."""
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
        members = [(about.name, about.offset_data, about.size) for about in tar.getmembers() if not about.isdir()]
        assert not data[tar.offset : tar.offset + 2 * BLOCK].strip(b"\0"), f"no header at byte {tar.offset}"
        return members


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _number(field: bytes) -> int:
    if field[:1] in (b"\x80", b"\xff"):
        return int.from_bytes(field[1:], "big") - (256 ** (len(field) - 1) if field[:1] == b"\xff" else 0)
    return int(field.partition(b"\0")[0].decode("ascii", "replace").strip() or "0", 8)
