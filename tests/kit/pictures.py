"""Files of pictures that claim a size."""

import struct
import zlib


def png(
    width: int, height: int, *chunks: tuple[bytes, bytes], depth: int = 8, color: int = 2, rows: bytes = bytes(100)
) -> bytes:
    """A PNG file that claims this size, and by default has almost no pixels. `chunks`: (name, body), before the
    pixels. `color`: the format's type of colour; 2 is RGB, 0 is grey."""
    blocks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0)),
        *chunks,
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in blocks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
