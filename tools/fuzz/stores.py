"""Fuzzing of stores in several files: the index of a store, and shards that are merged. h5py reads each by itself."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from . import mutations
from .features import KEYS, REGIONS, arrays, classes
from .folder import UNTOUCHED
from .harness import Surface
from .hdf5 import spoil_store
from .shards import ODD_NAMES

SHARDS, COUNT = 3, 9  # shards, and images in them


def surfaces() -> list[Surface]:
    return [
        Surface("index", _indexed, _spoil_index, _read_index, _check_index, named=r"\.features\.index|part\d\.h5"),
        Surface("feature_shards", _shards, _spoil_shards, _merge, _check_merged, named=r"regions(-\S+)?\.h5"),
    ]


def _fill(path: Path, keys: list[str], **purpose: Any) -> None:
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record

    with StoreWriter(path, {"extractor": "toy", **purpose}, "float32") as writer:
        for key in keys:
            number = _number(key)
            features, boxes = arrays(number)
            names = tuple(f"thing {n % 2}" for n in range(REGIONS[number]))
            writer.add(Record(key, features, boxes, names, boxes[:, 0], classes(number)))
        writer.finish()


def _number(key: str) -> int:
    """The number of an image's features."""
    return KEYS.index(key) if key in KEYS else int(key.rpartition(" ")[2]) % len(KEYS)


def naive(path: Path) -> dict[str, dict[str, Any]]:
    """What h5py finds in a store: the arrays of each image, names in place of their numbers."""
    import h5py

    content, first = {}, 0
    with h5py.File(path, "r", locking=False) as file:
        names = {name: file[name][:] for name in ("label_names", "class_names") if name in file}
        rows = ("features", "boxes", "scores", "labels", "class_ids", "class_probabilities")
        values = {name: file[name][:] for name in rows if name in file}
        for key, last in zip(file["keys"][:].tolist(), file["ends"][:].tolist(), strict=True):
            image = {name: array[first:last] for name, array in values.items()}
            for name, texts in (("labels", "label_names"), ("class_ids", "class_names")):
                if name in image:
                    known = [*names[texts].tolist(), None]
                    image[name] = np.array([[known[n] for n in np.atleast_1d(row)] for row in image[name]], object)
            assert key.decode() not in content, f"{key!r} is there twice"
            content[key.decode()], first = image, last
    return content


def _assert_same(key: str, actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """Values are the same, boxes inside the picture. What some regions of an image lack (nan, no name), all may lack;
    what none has, a store may leave out."""
    assert np.array_equal(actual["features"], expected["features"]), f"features of {key}"
    for name in ("boxes", "scores", "labels", "class_ids"):
        merged, array = actual.get(name), expected.get(name)
        if merged is None or _lacks(merged).all():
            unsure = name == "class_ids" and (expected["class_probabilities"] == 0).any()
            assert array is None or _lacks(array).any() or not array.size or unsure, f"{name} of {key} are lost"
            continue
        assert array is not None, f"{name} of {key} come from nowhere"
        array = array.clip(0, 1) if name == "boxes" else array
        assert np.array_equal(merged, array), f"{name} of {key}: {merged!r:.200} instead of {array!r:.200}"
        if name == "class_ids":
            assert np.array_equal(actual["class_probabilities"], expected["class_probabilities"]), f"classes of {key}"


def _lacks(array: np.ndarray) -> np.ndarray:
    return np.equal(array, None) if array.dtype == object else np.isnan(array)


# --- the index ---


def _indexed(folder: Path) -> None:
    """Four stores with one or two images, and their index."""
    from mmgen.features.index import write_index

    place = folder / "regions"
    place.mkdir()
    for number, keys in enumerate((KEYS[:1], KEYS[1:2], KEYS[2:], ["image 5"])):
        path = place / f"part{number}.h5"
        _fill(path, list(keys))
        os.utime(path, ns=(UNTOUCHED, UNTOUCHED))  # as in a case, or the index would be older than its files
    write_index(place)


def _spoil_index(draw: Random, folder: Path, _) -> Path:
    place = folder / "regions"
    path = place / ".features.index"
    what = draw.random()
    if what < 0.3:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes(), [(place / "part1.h5").read_bytes()]))
    elif what < 0.8:
        path.write_bytes(_resealed(draw, path.read_bytes()))
    elif what < 0.9:  # a store with its old size and date
        store = place / f"part{draw.randrange(4)}.h5"
        data = bytearray(store.read_bytes())
        for _ in range(draw.choice((1, 2, 8))):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        store.write_bytes(data)
        os.utime(store, ns=(UNTOUCHED, UNTOUCHED))
    elif what < 0.95:
        names = [f"part{number}.h5" for number in range(5)]
        store = place / draw.choice(names[:4])
        store.rename(place / draw.choice(names)) if draw.random() < 0.7 else store.unlink()
    else:
        path.unlink()
        draw.choice((path.mkdir, lambda: os.mkfifo(path), lambda: path.symlink_to(path)))()
    return path


def _resealed(draw: Random, data: bytes) -> bytes:
    """Another index with a right checksum, as another program would write it."""
    from mmgen.features.index import ALIGNED, CHECKSUM, MAGIC

    line, _, arrays = data[CHECKSUM:].partition(b"\n")
    what = draw.random()
    if what < 0.4:
        odd = [[2, 1, 1], [1, 1, 1, 1], [-1, 6], 2**62, ["part0.h5", 1, 1], ["../part0.h5", 0, 0]]
        text = mutations.json_(draw, json.loads(line), odd).encode("utf-8", "surrogatepass")
        content = text + b" " * (-(CHECKSUM + len(text) + 1) % ALIGNED) + b"\n" + arrays
    elif what < 0.8:  # a number or a key
        numbers, place = bytearray(arrays), draw.randrange(0, len(arrays), 8)
        number = draw.choice((-1, 0, 1, 2, 3, 5, 10**6, 2**63 - 1, -(2**63), draw.getrandbits(62)))
        numbers[place : place + 8] = number.to_bytes(8, "little", signed=True)
        content = line + b"\n" + numbers
    else:
        content = mutations.bytes_(draw, data[CHECKSUM:])
    return MAGIC + b"%08x " % zlib.crc32(content) + content


def _read_index(path: Path, _) -> Any:
    """Every image by its key, as a run reads them, and all in order."""
    from mmgen.features.stores import open_store

    store = open_store(path.parent)
    try:
        read = [(key, store.count(key), store.file_of(key), store.read(key)) for key in store]
        absent = [key for key in ("", "2", "x" * 99) if key in store]
        assert store.width == read[0][3].features.shape[1] and store.fingerprint == {"extractor": "toy"}
        return store.describe(), read, absent, [record.key for record in store.records()]
    finally:
        store.close()


def _check_index(path: Path, content: Any, _) -> None:
    described, read, absent, order = content
    stores = [naive(file) for file in sorted(path.parent.glob("*.h5"))]
    expected = [(key, number, image) for number, images in enumerate(stores) for key, image in images.items()]
    assert [key for key, *_ in read] == order == [key for key, *_ in expected] and not absent, f"{order}, {absent}"
    assert described["images"] == len(expected)
    for (key, count, number, record), (_, file, image) in zip(read, expected, strict=True):
        assert (count, number) == (len(image["features"]), file), f"{key} has {count} regions in file {number}"
        assert np.array_equal(record.features, image["features"]), f"features of {key}"
        assert np.array_equal(record.boxes, image["boxes"]), f"boxes of {key}"
        assert record.region_names == tuple(row[0].decode() for row in image["labels"]), f"names of {key}"


# --- shards that are merged ---


def _keys() -> list[str]:
    return [*KEYS, *(f"image {number}" for number in range(len(KEYS), COUNT))]


def _shards(folder: Path) -> None:
    from mmgen.features.shards import Shard

    for number in range(1, SHARDS + 1):
        shard = Shard(number, SHARDS)
        _fill(shard.path(folder / "regions.h5"), [key for key in _keys() if shard.owns(key)])
    _fill(folder / "other.h5", ["image 7"])
    _fill(folder / "unlike.h5", ["image 7"], settings={"size": 9})


def _spoil_shards(draw: Random, folder: Path, _) -> Path:
    target = folder / "regions.h5"
    paths = [folder / f"regions-{number}-of-{SHARDS}.h5" for number in range(1, SHARDS + 1)]
    path, what = draw.choice(paths), draw.random()
    if what < 0.35:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes(), [paths[0].read_bytes()]))
    elif what < 0.65:
        spoil_store(draw, path)
    elif what < 0.75:
        odd = folder / f"regions-{draw.choice(ODD_NAMES)}.h5"
        path.rename(odd) if draw.random() < 0.5 else shutil.copy(path, odd)
    elif what < 0.8:
        path.unlink()
    elif what < 0.9:
        path.write_bytes(draw.choice((*paths, folder / "other.h5", folder / "unlike.h5")).read_bytes())
    else:  # something is there where the merged file is to be
        begun = draw.choice((target, folder / "regions.h5.partial"))
        begun.write_bytes(mutations.bytes_(draw, draw.choice((path, folder / "other.h5")).read_bytes()))
    return path


def _merge(path: Path, _) -> Any:
    """As `mmgen merge` does it."""
    from mmgen.features.merge import checked_shards, write_merged
    from mmgen.features.store import FeatureStore
    from mmgen.progress import Progress

    target = path.with_name("regions.h5")
    store = checked_shards(target)
    write_merged(target, store, Progress())
    store.close()
    return [record.key for record in FeatureStore(target).records()]


def _check_merged(path: Path, keys: Any, _) -> None:
    shards = [naive(path.with_name(f"regions-{number}-of-{SHARDS}.h5")) for number in range(1, SHARDS + 1)]
    expected = {key: image for images in shards for key, image in images.items()}
    merged = naive(path.with_name("regions.h5"))
    assert [*merged] == keys and merged.keys() == expected.keys(), f"{keys} instead of {[*expected]}"
    for key, image in merged.items():
        _assert_same(key, image, expected[key])
