"""Parquet files and object stores; both need packages of the extra `streams`."""

import sys
from pathlib import Path

import pytest
from kit import served
from mmgen_streams import Archives
from mmgen_streams.dataset import pictures

from mmgen.errors import DataError

COLORS = ("red", "green", "blue", "white", "pink")


@pytest.fixture
def parquet():
    pytest.importorskip("pyarrow", reason='needs pyarrow (pip install ".[streams]")')
    import pyarrow
    import pyarrow.parquet

    return lambda path, **columns: pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=2)


def test_pictures_are_bytes_paths_or_both(parquet, tmp_path):
    for color in COLORS:
        (tmp_path / f"{color}.png").write_bytes(served.picture(color))
    values = {
        "bytes": [served.picture(color) for color in COLORS],
        "paths": [f"{color}.png" for color in COLORS],
        "both": [{"bytes": None, "path": f"{color}.png"} for color in COLORS],
    }
    for name, column in values.items():
        parquet(tmp_path / f"{name}.parquet", key=list(COLORS), image=column)
        place = str(tmp_path / f"{name}.parquet")
        loaded = {picture.key: picture.load() for picture in pictures(Archives(train=place), place)}
        assert list(loaded) == list(COLORS) and loaded["green"].getpixel((0, 0)) == (0, 128, 0)


def test_the_stream_starts_at_any_row(parquet, tmp_path):
    place = str(tmp_path / "a.parquet")
    parquet(place, key=[*map(str, range(5))], caption=list("abcde"), questions=[["what?"]] * 5)
    stream = Archives(train=place, columns={"caption": "caption"}, targets="questions").build().stream("train")
    for start in range(11):
        examples = stream.read(start)
        ids = [next(examples).id for _ in range(7)]
        assert ids == [str((start + place) % 5) for place in range(7)]


def test_paths_that_climb_and_damaged_files(parquet, tmp_path):
    place = str(tmp_path / "a.parquet")
    values = ["/etc/passwd", "../x.png", "http://example.org/x.png", None]
    parquet(place, key=list("abcd"), image=values)
    for number, picture in enumerate(pictures(Archives(train=place), place)):
        with pytest.raises(DataError) as error:
            picture.load()
        problem = f"'{values[number]}' leads out of the folder of the file"
        problem = problem if values[number] else "has no picture; expected bytes, a path, or a table of both"
        assert str(error.value) == f"{place}: row {number}: {problem}"
    with pytest.raises(DataError) as error:
        next(pictures(Archives(train=place, picture="photo"), place))
    assert str(error.value) == f"{place}: no column 'photo'; the columns are key, image"
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(DataError, match="text.parquet: not a parquet file, or damaged"):
        next(pictures(Archives(train="x"), str(tmp_path / "text.parquet")))


def test_an_object_store(parquet, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    for color in COLORS:
        store.pipe(f"/photos/{color}.png", served.picture(color))
    store.pipe("/photos/more/notes.txt", b"text")
    keys = [picture.key for picture in pictures(Archives(train="x"), "memory://photos")]
    assert keys == sorted(COLORS)
    first = next(pictures(Archives(train="x"), "memory://photos"))
    assert first.load().getpixel((0, 0)) == (0, 0, 255)
    with pytest.raises(DataError, match="memory://empty: contains no images"):
        list(pictures(Archives(train="x"), "memory://empty"))
    with pytest.raises(DataError) as error:
        list(pictures(Archives(train="x"), "nosuch://bucket/a.tar"))
    assert str(error.value) == "nosuch://bucket/a.tar: fsspec knows no such kind of URL"
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(DataError) as error:
        list(pictures(Archives(train="x"), "s3://bucket/photos"))
    assert str(error.value) == (
        "s3://bucket/photos: fsspec needs another package for s3://, such as s3fs for s3:// or gcsfs for gs://; "
        "install it"
    )


def test_an_object_store_that_fails_while_it_is_read(write_tar, tmp_path, monkeypatch):
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    place = "memory:///failing/a.tar"
    store.pipe("/failing/red.png", served.picture())
    store.pipe("/failing/a.tar", Path(write_tar(tmp_path / "a.tar", {"a.png": served.picture()})).read_bytes())
    (red,) = pictures(Archives(train="x"), "memory:///failing")
    (member,) = pictures(Archives(train="x"), place)

    class Unreachable(Exception):  # as the packages of object stores have them, of no built-in kind
        pass

    def fail(*_):
        raise Unreachable

    for name in ("read", "readinto"):
        monkeypatch.setattr(type(store.store["/failing/a.tar"]), name, fail, raising=False)
    for picture, name in ((red, "memory:///failing/red.png"), (member, place)):
        with pytest.raises(DataError) as error:
            picture.load()
        assert str(error.value) == f"{name}: cannot be read: Unreachable"
    with pytest.raises(DataError, match="cannot be read: Unreachable"):
        list(pictures(Archives(train="x"), place))


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("pyarrow", "fsspec"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for place, name in ((str(tmp_path / "a.parquet"), "pyarrow"), ("s3://bucket/photos", "fsspec")):
        with pytest.raises(DataError) as error:
            list(pictures(Archives(train="x"), place))
        assert str(error.value) == f'{place}: needs {name}; in a checkout of mmgen, run: pip install ".[streams]"'
