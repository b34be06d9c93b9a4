"""Random damage to bytes, texts and JSON values. All draws come from a `random.Random`, so that they can be
repeated."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any
from unittest.mock import patch

ODD_BYTES = [
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\r",
    b"\n",
    b"\n\n",
    b"\t",
    b"\x1b[31m",
    b'"',
    b"'",
    b"\\",
    b"{",
    b"[",
    b"]",
    b"}",
    b",",
    b":",
    b"=",
    b"\xed\xa0\x80",
    "\u2028".encode(),
    "é".encode(),
    b"null",
    b"NaN",
    b"1e999",
    b"-1",
    b"0",
    b"9" * 5000,
    b"[" * 3000,
    b'{"a":' * 2000,
    b"x" * 5000,
    b"\x1f\x8b",
]
ODD_VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    10**30,
    -(10**18),
    2**63,
    1.5,
    -0.0,
    float("nan"),
    float("inf"),
    1e308,
    "",
    " ",
    "x",
    "x" * 3000,
    "\0",
    "\n",
    "a\nb",
    "\ud800",
    "\x1b[2J",
    "<script>alert(1)</script>",
    "../../etc/passwd",
    "/etc/passwd",
    "~",
    "$HOME",
    "%s%n",
    "{0}",
    "0",
    "1e5",
    "nan",
    [],
    [[]],
    [None],
    {},
    {"": {}},
    {"type": "x"},
    ["a", 1, None],
    "２",
    "\u202e",
]


def bytes_(draw: Random, data: bytes, donors: Sequence[bytes] = ()) -> bytes:
    """Damage bytes once or a few times."""
    for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
        data = draw.choice(BYTES)(draw, data, donors)
    return data


def _flip(draw: Random, data: bytes, _) -> bytes:
    spoilt = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 8, 64))) if spoilt else ():
        spoilt[draw.randrange(len(spoilt))] ^= 1 << draw.randrange(8)
    return bytes(spoilt)


def _flip_early(draw: Random, data: bytes, _) -> bytes:
    """Flip a bit where a header is likely."""
    head = min(len(data), draw.choice((16, 128, 1024)))
    return _flip(draw, data[:head], _) + data[head:]


def _truncate(draw: Random, data: bytes, _) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _remove(draw: Random, data: bytes, _) -> bytes:
    first, last = _span(draw, data)
    return data[:first] + data[last:]


def _again(draw: Random, data: bytes, _) -> bytes:
    first, last = _span(draw, data)
    return data[:last] + data[first:last] + data[last:]


def _insert(draw: Random, data: bytes, _) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.choice(ODD_BYTES) + data[place:]


def _overwrite(draw: Random, data: bytes, _) -> bytes:
    first, last = _span(draw, data)
    return (
        data[:first]
        + draw.choice((bytes(last - first), b"\xff" * (last - first), draw.randbytes(last - first)))
        + data[last:]
    )


def _exchange(draw: Random, data: bytes, _) -> bytes:
    cut = sorted(draw.randrange(len(data) + 1) for _ in range(3))
    return data[: cut[0]] + data[cut[1] : cut[2]] + data[cut[0] : cut[1]] + data[cut[2] :]


def _splice(draw: Random, data: bytes, donors: Sequence[bytes]) -> bytes:
    donor = draw.choice(donors) if donors else data
    return data[: draw.randrange(len(data) + 1)] + donor[draw.randrange(len(donor) + 1) :]


def _replace_all(draw: Random, data: bytes, _) -> bytes:
    return draw.choice(
        (
            b"",
            b"\n",
            data * 2,
            data.replace(b"\n", b"\r\n"),
            data.replace(b"\n", b"\r"),
            b"\xef\xbb\xbf" + data,
            data.decode("latin-1").encode("utf-16"),
            b"\0" * len(data),
        )
    )


def _span(draw: Random, data: bytes) -> tuple[int, int]:
    first = draw.randrange(len(data) + 1)
    return first, min(len(data), first + draw.choice((1, 2, 4, 16, 200)))


BYTES = [
    _flip,
    _flip,
    _flip_early,
    _truncate,
    _truncate,
    _remove,
    _again,
    _insert,
    _insert,
    _overwrite,
    _exchange,
    _splice,
    _replace_all,
]


@contextmanager
def harmless() -> Iterator[None]:
    """In the block, `bytes_`, `lines` and `json_` damage nothing."""
    with ExitStack() as stack:
        for name in ("bytes_", "lines"):
            stack.enter_context(patch.dict(globals(), {name: lambda draw, content, *_: content}))
        stack.enter_context(patch.dict(globals(), {"json_": lambda draw, value, *_: json.dumps(value)}))
        yield


def lines(draw: Random, text: str, odd: Sequence[str]) -> str:
    """Move, repeat, remove or swap lines and words; `odd` are values worth trying."""
    rows = text.split("\n")
    for _ in range(draw.choice((1, 1, 2, 3, 6))):
        if not rows:
            break
        place = draw.randrange(len(rows))
        what = draw.randrange(8)
        if what == 0:
            del rows[place]
        elif what == 1:
            rows.insert(draw.randrange(len(rows) + 1), rows[place])
        elif what == 2:
            rows.insert(place, draw.choice(odd))
        elif what in (3, 4) and "=" in rows[place]:
            rows[place] = f"{rows[place].partition('=')[0]}= {draw.choice(odd)}"
        elif what == 5 and "=" in rows[place]:
            name, _, value = rows[place].partition("=")
            rows[place] = f"{_misspelt(draw, name.rstrip())} ={value}"
        elif what == 6:
            second = draw.randrange(len(rows))
            rows[place], rows[second] = rows[second], rows[place]
        else:
            rows[place] = _misspelt(draw, rows[place])
    return "\n".join(rows)


def _misspelt(draw: Random, word: str) -> str:
    place = draw.randrange(len(word) + 1)
    return draw.choice(
        (
            word[:place] + word[place + 1 :],
            word[:place] + draw.choice("abx_.-\"[]#= {}'\\0é") + word[place:],
            word * 2,
            word.upper(),
        )
    )


def json_(draw: Random, value: Any, odd: Sequence[Any] = ()) -> str:
    """A JSON text of the value with some parts damaged; it may be invalid JSON."""
    value = json.loads(json.dumps(value))
    for _ in range(draw.choice((1, 1, 2, 4))):
        value = _spoilt(draw, value, [*odd, *ODD_VALUES])
    text = json.dumps(value, ensure_ascii=draw.random() < 0.5)
    return (
        bytes_(draw, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")
        if draw.random() < 0.15
        else text
    )


def _spoilt(draw: Random, value: Any, odd: Sequence[Any]) -> Any:
    """Change one node."""
    places = list(_nodes(value))
    if not places:
        return copy.deepcopy(draw.choice(odd))
    holder, key = draw.choice(places)
    what = draw.randrange(9)
    if what == 0:
        del holder[key]
    elif what == 1 and isinstance(holder, dict):
        holder[draw.choice((f"{key}x", key.upper(), "", "\n", "id", "type", "text"))] = holder.pop(key)
    elif what == 2 and isinstance(holder, list):
        holder.insert(draw.randrange(len(holder) + 1), holder[key])
    elif what == 3:
        holder[key] = [holder[key]]
    elif what == 4:
        holder[key] = {"text": holder[key]}
    elif what == 5:
        holder[key] = str(holder[key])
    elif what == 6:
        donor, name = draw.choice(places)
        holder[key] = json.loads(
            json.dumps(donor.get(name) if isinstance(donor, dict) else donor[name] if name < len(donor) else None)
        )
    elif what == 7 and isinstance(holder[key], (int, float)):
        holder[key] = draw.choice((-holder[key], holder[key] + 1, holder[key] * 10**6, str(holder[key])))
    else:
        holder[key] = copy.deepcopy(draw.choice(odd))  # or what is put into it would be there in the next case
    return value


def _nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every nested value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from _nodes(inner)


def write(path, text: str) -> None:
    """Write a text; incomplete characters and lone surrogates are written unchanged."""
    path.write_bytes(text.encode("utf-8", "surrogatepass" if not _escaped(text) else "surrogateescape"))


def _escaped(text: str) -> bool:
    return any("\udc80" <= character <= "\udcff" for character in text)


def some(draw: Random, **ways: tuple[float, Callable[[], Any]]) -> Any:
    """One of the functions, drawn by weight."""
    names = list(ways)
    return ways[draw.choices(names, [ways[name][0] for name in names])[0]][1]()
