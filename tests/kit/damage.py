"""Strategies for damaged files: by their structure three times in four, else byte by byte; now and then packed."""

import base64
import contextlib
import gzip
import io
import json
import pickle
import re
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from hypothesis import strategies as st

STATUS = Path("/proc/self/statm")
ODD = r"""[null, true, -1, 0, 1, 1.5, 9223372036854775808, 1000000000000000000000000000000, 1e308, NaN, Infinity, "",
    "x", " ", "a\nb", "\u0000", "\ud800", "\u001b[2J", "\u202e", "../../etc/passwd", "/etc/passwd", "1e5", "<script>",
    "F16", "I64", [], [[]], [null], {}, {"": {}}, {"type": "x"}, {"text": "x"}, [0, 1000000000000], [2, 0], ["a", 1]]"""
VALUES = st.sampled_from([*json.loads(ODD), "x" * 3000, "9" * 5000]) | st.integers() | st.text(max_size=5)
PIECES = [b"", b"\0", b"\xff", b'"', b"\n", b"\r", b"nan", b"1e999", b"9" * 5000, b"[" * 3000, b'{"a":' * 2000]
LINES = (
    r"""|x = [|[training]|[[steps]]|a.b = 1|x = 1979-05-27|epochs = 10000000000|extends = 'toy.toml'|profile = 'x'
[inputs.'../x']|[profiles."a\nb"]|"a\nb" = 1|[/EN#1/people a]|[/EN#x/people a]|[/EN#2/a/b c
<!DOCTYPE a [<!ENTITY b 'x'>]>|&b;|<object><name>9</name><bndbox/></object>|<xmin>nan</xmin>|x = {"""
    + "a={" * 3000
    + "|"
    + "<a>" * 500
)
CLAIMS = {  # of the header of a NumPy array
    rb"'<f4'": [b"'|O'", b"'>f4'", b"'<M8[s]'", b"[('a', '<f4')]", b"'V4'", b"__import__('os')"],
    rb"\([\d, ]+\)": [b"(100000000, 6)", b"(-3, 6)", b"(3,)", b"()", b"(10000000000000000000000, 6)", b"(3, 5 "],
    rb"NUMPY..": [b"NUMPY\3\0", b"NUMPY\xff\0"],
}
ARRAYS = [
    np.array(value) for value in (np.nan, 0, -1, "x", True, [], [[1, 2]], ["a"], [[[1.0]]], [[1j]], [[1e300] * 5])
]
ATTRIBUTES = [0, "", b"\xff", "null", '{"extractor": [1]}', "[" * 5000, np.zeros((2, 2)), h5py.Empty("f4")]


def nodes(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of every nested value."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield value, key
        yield from nodes(inner)


def change(draw: Any, value: Any) -> None:
    """One value somewhere in a container becomes another one, or is lost, doubled, wrapped, or under another name."""
    holder, key = draw(st.sampled_from([*nodes(value)]))
    what = draw(st.sampled_from(["other"] * 4 + ["lost", "wrapped", "text", "moved"]))
    if what == "lost":
        del holder[key]
    elif what != "moved":
        holder[key] = [holder[key]] if what == "wrapped" else str(holder[key]) if what == "text" else draw(VALUES)
    elif isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[draw(st.sampled_from(["", "a\nb", "\ud800", "id", "type", f"{key}x"]))] = holder.pop(key)


def in_json(draw: Any, data: bytes) -> bytes:
    """A value of a JSON text, or of one of JSON lines."""
    try:
        rows = [json.loads(data)]
    except ValueError:
        rows = [json.loads(line) for line in data.splitlines()]
    change(draw, rows)
    return "\n".join(map(json.dumps, rows)).encode()


def in_cells(draw: Any, data: bytes) -> bytes:
    """A cell of a table, or what separates the cells of a row."""
    rows, separator = data.split(b"\n"), b"\t" if b"\t" in data else b","
    place = draw(st.integers(0, len(rows) - 1))
    cells = rows[place].split(separator)
    texts = VALUES.map(lambda value: str(value).encode("utf-8", "surrogatepass"))
    arrays = st.lists(st.floats(width=32), max_size=20).map(lambda some: base64.b64encode(np.float32(some).tobytes()))
    cells[draw(st.integers(0, len(cells) - 1))] = draw(texts | arrays | st.sampled_from([*cells, *PIECES]))
    rows[place] = draw(st.sampled_from([separator] * 3 + [b";", b" "])).join(cells)
    return b"\n".join(rows)


def in_lines(draw: Any, data: bytes) -> bytes:
    """A line that is lost, doubled, another one, or has another value behind its "="."""
    rows = data.decode().split("\n")
    place = draw(st.integers(0, len(rows) - 1))
    row, other = rows[place], draw(st.sampled_from(re.split(r"\||\n", LINES)))
    value = draw(VALUES.map(json.dumps) | st.sampled_from(["", "07:32:00", "{ type = 3 }", "'''a\nb'''"]))
    with_value = [f"{row.partition('=')[0]}= {value}"]
    rows[place : place + 1] = draw(st.sampled_from([[], [row, row], [other], [row, other], *[with_value] * 4]))
    return "\n".join(rows).encode("utf-8", "surrogatepass")


def in_pickle(draw: Any, data: bytes) -> bytes:
    """A value of a pickle."""
    values = [pickle.loads(data), None]
    change(draw, values)
    return pickle.dumps(values[0], draw(st.sampled_from([0, 1, 2, 4])))


def in_header(draw: Any, data: bytes) -> bytes:
    """A value of the header of safetensors, or its length."""
    length = int.from_bytes(data[:8], "little")
    header = [json.loads(data[8 : 8 + length]), None]
    change(draw, header)
    text = json.dumps(header[0]).encode()
    claimed = draw(st.sampled_from([len(text)] * 6 + [0, len(text) + 8, 2**63]))
    return claimed.to_bytes(8, "little") + text + data[8 + length :]


def in_hdf5(draw: Any, data: bytes) -> bytes:
    """A dataset of another kind, size or place, another number in it, or another attribute."""
    content = io.BytesIO(data)
    with h5py.File(content, "r+") as file:
        name, what = draw(st.sampled_from(sorted(file))), draw(st.integers(0, 4))
        old = file[name][:]
        if what == 0 and file.attrs:
            file.attrs[draw(st.sampled_from(sorted(file.attrs)))] = draw(st.sampled_from(ATTRIBUTES))
        elif what < 3:
            odd = [b"", b"\xff", b"25"] if old.dtype.kind == "S" else [-1, 0, 5, 10**6, 2**31 - 1]
            odd = [0, ord('"'), 255] if old.dtype == np.uint8 else odd
            file[name][draw(st.integers(0, len(old) - 1))] = draw(st.sampled_from(odd))
        else:
            del file[name]
            rest, chunks = old.shape[1:], (1 << 16, *old.shape[1:])
            types = [
                "f8",
                "i8",
                "?",
                "c8",
                "V4",
                "S3",
                h5py.vlen_dtype(np.float32),
                h5py.ref_dtype,
                h5py.string_dtype(),
            ]
            claims = [{"shape": (10**12, *rest), "chunks": chunks}, {"shape": (0, *rest)}]
            claims += [{"shape": (3 * 10**8, *rest), "chunks": chunks, "compression": "gzip"}]
            claims += [{"shape": old.shape, "external": [("/etc/passwd", 0, 1 << 20)]}, *[{"data": old}] * 5]
            arrays = [old[:-1], old[None], old.reshape(-1), h5py.Empty("f4"), np.float64(3)]
            links = [h5py.ExternalLink("/etc/passwd", "/x"), h5py.SoftLink(f"/{name}")]
            other = draw(st.sampled_from([None, *links, *types, *claims, *arrays]))
            if isinstance(other, dict):
                file.create_dataset(name, dtype=old.dtype, **other)
            elif any(other is kind for kind in types):
                file.create_dataset(name, old.shape, other)
            elif other is not None:
                file[name] = other
    return content.getvalue()


def in_arrays(draw: Any, data: bytes) -> bytes:
    """An array of an archive that is another one, or lost, or says so."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = dict(archive)
    arrays[draw(st.sampled_from(sorted(arrays)))] = draw(st.sampled_from([None, *ARRAYS]))
    out = io.BytesIO()
    np.savez(out, **{name: array for name, array in arrays.items() if array is not None})
    return draw(st.sampled_from([out.getvalue(), in_array(draw, data)]))


def in_array(draw: Any, data: bytes) -> bytes:
    """What the header of a NumPy array says."""
    claim = draw(st.sampled_from(sorted(CLAIMS)))
    other = draw(st.sampled_from(CLAIMS[claim]))
    return re.sub(claim, lambda _: other, data, count=1, flags=re.DOTALL)


def in_bytes(draw: Any, data: bytes) -> bytes:
    """Bytes that are lost, doubled, turned, or others; sometimes nothing behind them."""
    first = draw(st.integers(0, len(data)))
    last = draw(st.integers(first, min(len(data), first + 200)))
    turned = bytes(byte ^ 1 << draw(st.integers(0, 7)) for byte in data[first : first + 1]) + data[first + 1 : last]
    other = draw(st.sampled_from([turned, data[first:last] * 2, bytes(last - first), *PIECES]) | st.binary(max_size=8))
    return data[:first] + other + draw(st.sampled_from([data[last:], data[last:], b""]))


BY_ENDING = {
    **dict.fromkeys((".json", ".jsonl"), in_json),
    **dict.fromkeys((".csv", ".tsv", ".conllu"), in_cells),
    **dict.fromkeys((".toml", ".txt", ".xml"), in_lines),
    **{".p": in_pickle, ".safetensors": in_header, ".h5": in_hdf5, ".npz": in_arrays, ".npy": in_array},
}
PACKED = [gzip.compress, lambda data: b"\xef\xbb\xbf" + data, lambda data: data.replace(b"\n", b"\r\n")]


@st.composite
def damaged(draw: Any, whole: bytes, ending: str) -> bytes:
    """A damaged copy of a whole file, whose name ends in `ending`."""
    way = draw(st.sampled_from([in_bytes, *[BY_ENDING.get(ending, in_bytes)] * 3]))
    return draw(st.sampled_from([bytes] * 9 + PACKED))(way(draw, whole))


@contextlib.contextmanager
def confined(spare: int) -> Iterator[None]:
    """The process can take so many bytes of memory beside what it has, where the system says how much that is."""
    if not STATUS.exists():
        yield
        return
    taken = int(STATUS.read_text().split()[0]) * resource.getpagesize()
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + spare, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


# of an address; and of what a damaged file claims, which it asks for but does not fill
HDF5_SAYS = "past end of allocation|memory allocation failed for on disk image buffer"


def check_memory(error: BaseException | None, place: Path) -> None:
    """A refusal is one of mmgen's, and no error of the memory that `confined` left, in other words."""
    while error is not None:
        text = re.sub(HDF5_SAYS, "", f"{error!r}".replace(str(place), ""))
        assert not re.search(r"MemoryError|(?i:alloc)", text), text
        error = error.__cause__ or error.__context__
