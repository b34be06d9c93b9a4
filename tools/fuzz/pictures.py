"""Fuzzing of images in every supported format: an image that opens must have the size in its header, and PIL's
pixels."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from random import Random
from typing import Any

from . import mutations
from .harness import Surface

FORMATS = {"PNG": ".png", "JPEG": ".jpg", "GIF": ".gif", "BMP": ".bmp", "WEBP": ".webp", "TIFF": ".tiff"}
MODES = ("RGB", "RGB", "L", "P", "RGBA", "1", "CMYK", "I;16", "LA")


def surfaces() -> list[Surface]:
    return [Surface("image", _prepare, _spoil, _read, _check)]


def _prepare(folder: Path) -> Any:
    from PIL import Image

    draw = Random(0)
    pictures = []
    for kind, ending in FORMATS.items():
        for mode in MODES:
            image = Image.frombytes("RGB", (23, 17), draw.randbytes(23 * 17 * 3)).resize((46, 34))
            out = io.BytesIO()
            try:
                image.convert(mode).save(
                    out, kind, **({"compression": "tiff_deflate"} if kind == "TIFF" and mode == "L" else {})
                )
            except (OSError, ValueError, KeyError):
                continue
            pictures.append((ending, out.getvalue()))
    exif = Image.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    Image.frombytes("RGB", (23, 17), draw.randbytes(23 * 17 * 3)).save(out, "JPEG", exif=exif)
    return [*pictures, (".jpg", out.getvalue()), (".jpg", out.getvalue())]


def _spoil(draw: Random, folder: Path, prepared: Any) -> Path:
    ending, data = draw.choice(prepared)
    if ending == ".png" and draw.random() < 0.5:
        data = _chunks(draw, data)
    else:
        data = mutations.bytes_(draw, data, [donor for _, donor in prepared])
    path = folder / f"picture{draw.choice((ending, ending, '.jpg', '.PNG'))}"
    path.write_bytes(data)
    return path


def _chunks(draw: Random, data: bytes) -> bytes:
    """PNG chunks with valid checksums and wrong contents: impossible sizes, text that unpacks to gigabytes."""
    place, chunks = 8, []
    while place < len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        chunks.append((data[place + 4 : place + 8], data[place + 8 : place + 8 + length]))
        place += 12 + length
    what = draw.randrange(5)
    number = draw.randrange(len(chunks))
    if what == 0:
        size = draw.choice(((100_000, 100_000), (0, 5), (1, 2**31 - 1), (12_000, 12_000), (46, 35), (20_000, 4)))
        chunks[0] = (b"IHDR", struct.pack(">II", *size) + chunks[0][1][8:])
    elif what == 1:
        chunks.insert(
            1,
            (
                draw.choice((b"zTXt", b"iCCP", b"eXIf", b"tEXt", b"acTL")),
                b"x\0\0" + zlib.compress(bytes(draw.choice((10, 10**7)))),
            ),
        )
    elif what == 2:
        del chunks[number]
    elif what == 3:
        chunks.insert(number, chunks[draw.randrange(len(chunks))])
    else:
        chunks[number] = (chunks[number][0], mutations.bytes_(draw, chunks[number][1]))
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )
    return data[:8] + b"".join(packed)


def _read(path: Path, _) -> Any:
    from mmgen.features.images import open_image

    return (open_image(path),)


def _check(path: Path, content: Any, _) -> None:
    from PIL import Image, ImageOps

    with Image.open(path) as image:
        width, height = image.size
        expected = ImageOps.exif_transpose(image).convert("RGB")
    for picture in content:
        assert picture.mode == "RGB" and sorted(picture.size) == sorted((width, height)), (
            f"{picture.mode} {picture.size} for {width} x {height}"
        )
        assert picture.tobytes() == expected.tobytes(), "other pixels"
