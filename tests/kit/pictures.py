"""Files of pictures that claim a size."""

import struct
import zlib


def png(width: int, height: int, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG file that claims this size and has almost no pixels. `chunks`: (name, body), before the pixels."""
    blocks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        *chunks,
        (b"IDAT", zlib.compress(bytes(100))),
        (b"IEND", b""),
    ]
    packed = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in blocks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)
