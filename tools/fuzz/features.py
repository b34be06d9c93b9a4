"""Fuzzing of feature files: stores and their journals, bottom-up-attention's TSV, LXMERT's HDF5, and folders of
arrays. An independent reader checks each."""

from __future__ import annotations

import base64
import gzip
import io
import json
import logging
import re
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from . import mutations
from .harness import Surface
from .hdf5 import spoil_lxmert, spoil_store

KEYS = ("25", "71", "my photo", "é")
REGIONS = (3, 2, 4, 1)
WIDTH = 6


def surfaces() -> list[Surface]:
    return [
        Surface("store", _stores, _spoil_store, _read_store, _check_store),
        Surface("old_store", old_store, _spoil_old_store, _read_store, _check_store),
        Surface("journal", _stores, _spoil_journal, _read_journal, _check_journal),
        Surface("lxmert_h5", _lxmert, _spoil_lxmert, _read_lxmert, _check_lxmert, named=r"index\.json|spoilt\.h5"),
        Surface("tsv", _nothing, _spoil_tsv, _read_tsv, _check_tsv, r":\d+|broken|no images|gave features"),
        Surface("arrays", _nothing, _spoil_arrays, _read_arrays, _check_arrays),
    ]


def arrays(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and boxes of an image."""
    draw = np.random.default_rng(number)
    corners = draw.random((REGIONS[number], 2)).astype(np.float32) / 2
    return draw.random((REGIONS[number], WIDTH)).astype(np.float32), np.concatenate([corners, corners + 0.25], 1)


def classes(number: int) -> Any:
    """Classes that a detector might give to the regions of an image; unknown for the first image."""
    from mmgen.features.classes import Classes

    chances = np.random.default_rng(number).dirichlet(np.ones(5), REGIONS[number])
    return Classes.surest(tuple("abcde"), chances, 3) if number else None


def _nothing(folder: Path) -> None:
    logging.getLogger("mmgen").setLevel(logging.ERROR)


# --- stores and journals ---


def _stores(folder: Path) -> Any:
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record

    def fill(path: Path, finish: bool, plain: bool) -> Any:
        with StoreWriter(path, {"extractor": "toy", "settings": {"a": 1}}, "float16" if plain else "float32") as writer:
            for number, key in enumerate(KEYS):
                features, boxes = arrays(number)
                more = (
                    {}
                    if plain
                    else {
                        "region_names": tuple(f"thing {n % 2}" for n in range(REGIONS[number])),
                        "scores": boxes[:, 0],
                        "classes": classes(number),
                    }
                )
                writer.add(Record(key, features, boxes, **more))
            if finish:
                writer.finish()

    fill(folder / "plain.h5", True, True)
    fill(folder / "whole.h5", True, False)
    fill(folder / "begun.h5", False, False)
    with gzip.open(folder / "zeros.gz", "wb") as file:
        file.write(bytes(1 << 20))
    return {"journal": (folder / "begun.h5.partial").read_bytes()}


def _spoil_store(draw: Random, folder: Path, prepared: Any) -> Path:
    path = folder / draw.choice(("plain.h5", "whole.h5"))
    if draw.random() < 0.5:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        spoil_store(draw, path)
    return path


def old_store(folder: Path) -> None:
    """A store without checksums, as older versions and other programs write HDF5: texts in a heap, old layouts."""
    import h5py

    _stores(folder)
    with h5py.File(folder / "whole.h5") as new, h5py.File(folder / "old.h5", "w") as old:
        for name, dataset in new.items():
            old.create_dataset(name, data=dataset[:], dtype=dataset.dtype)
        old.attrs.update({"format": "mmgen features", "version": 1, "fingerprint": '{"extractor": "toy"}'})


def _spoil_old_store(draw: Random, folder: Path, _) -> Path:
    path = folder / "old.h5"
    path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    return path


def _read_store(path: Path, _) -> Any:
    """Read a store as a run does: open, describe and measure it, then read every image's features with boxes."""
    from mmgen.features.embedder import StoreReader
    from mmgen.features.store import FeatureStore
    from mmgen.tensors import Example

    store = FeatureStore(path)
    description = store.describe()
    reader = _reader(StoreReader, path, store)
    records = {}
    for key in store:
        record = store.read(key)
        rows = None
        if record.boxes is not None and len(record.features):
            rows = np.concatenate(reader.read(Example("x", {"image": key}))[0][:2], 1)
        records[key] = (record, rows)
    return description, records


def _reader(cls, path: Path, store) -> Any:
    from mmgen_regions import Regions

    return cls(Regions(features=path, fields=("image",), width=store.width), None)


def _check_store(path: Path, content: Any, _) -> None:
    import h5py

    description, records = content
    with h5py.File(path, "r", locking=False) as file:
        held = {name: file[name][:] for name in ("keys", "ends", *description["holds"])}
        held |= {"label_names": file["label_names"][:]} if "labels" in held else {}
        held |= {"class_names": file["class_names"][:]} if "class_ids" in held else {}
    keys, ends, first = [key.decode() for key in held["keys"]], held["ends"].tolist(), 0
    assert description["images"] == len(keys) == len(records), (
        f"{description['images']} images of {len(keys)}, {len(records)} read"
    )
    for key, last in zip(keys, ends, strict=True):
        record, rows = records[key]
        assert np.array_equal(record.features, held["features"][first:last]), f"features of {key}"
        assert np.isfinite(record.features).all() or rows is None, f"features of {key} are not finite"
        for name in ("boxes", "scores"):
            stored, actual = held.get(name), getattr(record, name)
            if stored is not None and not np.isnan(stored[first:last]).any():
                assert actual is not None and np.array_equal(actual, stored[first:last]), f"{name} of {key}"
        if rows is not None:
            assert np.isfinite(rows).all() and rows.shape == (last - first, description["width"] + 4), (
                f"rows of {key}: {rows.shape}"
            )
        if "labels" in held and (held["labels"][first:last] >= 0).all():
            assert record.region_names == tuple(held["label_names"][n].decode() for n in held["labels"][first:last]), (
                f"region names of {key}"
            )
        if record.classes is not None:
            assert [name.encode() for name in record.classes.names] == held["class_names"].tolist()
            assert np.array_equal(record.classes.ids, held["class_ids"][first:last]), f"classes of {key}"
            assert (record.classes.distributions().sum(1) < 1.001).all(), f"probabilities of {key}"
        first = last


def _spoil_journal(draw: Random, folder: Path, prepared: Any) -> Path:
    (folder / "begun.h5.partial").write_bytes(mutations.bytes_(draw, prepared["journal"]))
    return folder / "begun.h5"


def _read_journal(path: Path, _) -> Any:
    """Continue the journal to its end, and read the store."""
    from mmgen.features.store import FeatureStore
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record

    with StoreWriter(path, {"extractor": "toy", "settings": {"a": 1}}, "float32") as writer:
        for number, key in enumerate(KEYS):
            features, boxes = arrays(number)
            region_names = tuple(f"thing {n % 2}" for n in range(REGIONS[number]))
            writer.add(Record(key, features, boxes, region_names, boxes[:, 0], classes(number)))
        writer.finish()
    return {record.key: record for record in FeatureStore(path).records()}


def _check_journal(path: Path, content: Any, _) -> None:
    """The store must be the intended one whatever was damaged, because frames have checksums."""
    assert set(content) == set(KEYS), f"{set(content)}"
    for number, key in enumerate(KEYS):
        features, boxes = arrays(number)
        assert np.array_equal(content[key].features, features) and np.array_equal(content[key].boxes, boxes), key
        _check_classes(key, content[key].classes, classes(number))


def _check_classes(key: str, actual: Any, expected: Any) -> None:
    assert (actual is None) == (expected is None), f"classes of {key}"
    if actual is not None:
        assert actual.names == expected.names, f"names of the classes of {key}"
        assert np.array_equal(actual.ids, expected.ids), f"classes of {key}"
        assert np.array_equal(actual.probabilities, expected.probabilities), f"probabilities of {key}"


# --- LXMERT's HDF5 ---


def _lxmert(folder: Path) -> Any:
    import h5py

    with h5py.File(folder / "even.h5", "w") as file:
        file["image_features"] = np.stack([np.resize(arrays(n)[0], (2, WIDTH)) for n in range(4)])
        file["spatial_features"] = np.stack([np.resize(arrays(n)[1], (2, 6)) for n in range(4)])
    with h5py.File(folder / "uneven.h5", "w") as file:
        file["image_features"] = np.concatenate([arrays(n)[0] for n in range(4)])
        file["spatial_features"] = np.concatenate(
            [np.concatenate([arrays(n)[1], arrays(n)[1][:, :2]], 1) for n in range(4)]
        )
        ends = np.cumsum(REGIONS)
        file["pos_boxes"] = np.stack([ends - REGIONS, ends], 1)
    (folder / "index.json").write_text(json.dumps({key: number for number, key in enumerate(KEYS)}), encoding="utf-8")


def _spoil_lxmert(draw: Random, folder: Path, _) -> Path:
    path = folder / draw.choice(("even.h5", "uneven.h5"))
    what = draw.random()
    if what < 0.2:
        mutations.write(
            folder / "index.json",
            mutations.json_(draw, json.loads((folder / "index.json").read_text()), [3, 4, -1, [0], ["a", "b"]]),
        )
    elif what < 0.55:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    else:
        spoil_lxmert(draw, path)
    (folder / "spoilt.h5").write_bytes(path.read_bytes())
    return folder / ("index.json" if what < 0.2 else "spoilt.h5")


def _read_lxmert(path: Path, _) -> Any:
    from mmgen_regions import LxmertH5

    source = path.parent / "spoilt.h5"
    return _stored(LxmertH5(index=path.parent / "index.json").build(), source, path)


def _check_lxmert(path: Path, content: Any, _) -> None:
    import h5py

    index = json.loads((path.parent / "index.json").read_text(encoding="utf-8"))
    index = {str(name): row for row, name in enumerate(index)} if isinstance(index, list) else index
    keyed = {_key(name): row for name, row in reversed(index.items())}
    with h5py.File(path.parent / "spoilt.h5", "r", locking=False) as file:
        features = file["image_features"][:]
        ranges = file["pos_boxes"][:] if "pos_boxes" in file else None
        boxes = file["spatial_features"][..., :4] if "spatial_features" in file else None
    for key, record in content.items():
        rows = keyed[key] if ranges is None else slice(*(int(number) for number in ranges[keyed[key]]))
        assert np.array_equal(record.features, features[rows].astype(np.float32)), f"features of {key}"
        assert boxes is None or record.boxes is None or np.allclose(record.boxes, boxes[rows].clip(0, 1)), (
            f"boxes of {key}"
        )


def _key(name: str) -> str:
    from mmgen.files import image_key

    return image_key(name)


def _stored(extractor: Any, source: Path, spoilt: Path, target: Path | None = None) -> dict[str, Any]:
    """Import a file into a store of 32-bit floats; a message must name the damaged file."""
    from mmgen.errors import DataError
    from mmgen.features.extract import extract
    from mmgen.features.store import FeatureStore

    from .harness import judge

    target = target or source.parent / "made.h5"
    done = extract(extractor, source, target, dtype="float32")
    for _, reason in done.broken:
        wrong = judge(reason, spoilt, named=f"{re.escape(spoilt.name)}|{re.escape(str(source))}")
        if wrong:
            raise DataError(f"{reason}\n{wrong}\n")
    return {record.key: record for record in FeatureStore(target).records()}


# --- TSV ---


def _tsv_rows() -> list[bytes]:
    rows = []
    for number, key in enumerate(KEYS):
        features, boxes = arrays(number)
        pixels = boxes * np.array([200, 100, 200, 100], np.float32)
        text = [base64.b64encode(np.ascontiguousarray(a, np.float32).tobytes()) for a in (pixels, features)]
        rows.append(b"\t".join([key.encode(), b"200", b"100", str(len(boxes)).encode(), *text]))
    return rows


def _spoil_tsv(draw: Random, folder: Path, _) -> Path:
    rows = _tsv_rows()
    place = draw.randrange(len(rows))
    if draw.random() < 0.5:
        cells = rows[place].split(b"\t")
        cell = draw.randrange(len(cells))
        cells[cell] = draw.choice(
            (
                b"",
                b"0",
                b"-1",
                b"1e9",
                b"nan",
                b"inf",
                b"9" * 40,
                b"1.5",
                b"AAAA",
                b"=",
                cells[draw.randrange(len(cells))],
                mutations.bytes_(draw, cells[cell]),
                _odd_numbers(draw),
                "２".encode(),
            )
        )
        rows[place] = b"\t".join(draw.choice((cells, cells, cells[:-1], [*cells, b"x"], cells[::-1])))
        data = draw.choice((b"\n", b"\n", b"\r\n")).join(rows) + b"\n"
    else:
        data = mutations.bytes_(draw, b"\n".join(rows) + b"\n")
    packed = draw.random() < 0.3
    path = folder / ("rows.tsv.gz" if packed else "rows.tsv")
    path.write_bytes(
        draw.choice((gzip.compress(data, mtime=0), mutations.bytes_(draw, gzip.compress(data, mtime=0))))
        if packed
        else data
    )
    return path


def _odd_numbers(draw: Random) -> bytes:
    values = draw.choice(([np.nan] * 12, [np.inf] * 18, [1e38] * 12, [-5.0] * 12, [0.0], []))
    return base64.b64encode(np.array(values, np.float32).tobytes())


def _read_tsv(path: Path, _) -> Any:
    from mmgen_regions import BottomUpTsv

    return _stored(BottomUpTsv().build(), path, path)


def _check_tsv(path: Path, content: Any, _) -> None:
    data = path.read_bytes()
    rows = (gzip.decompress(data) if path.suffix == ".gz" else data).split(b"\n")
    seen: dict[str, Any] = {}
    for row in rows:
        cells = row.rstrip(b"\r").split(b"\t")
        key = _key(cells[0].decode(errors="replace"))
        if len(cells) == 6 and key in content and key not in seen:
            try:
                count, size = int(cells[3]), np.array([float(cells[1]), float(cells[2])] * 2, np.float32)
                boxes, features = (
                    np.frombuffer(base64.b64decode(cell, validate=True), np.float32).reshape(count, -1)
                    for cell in cells[4:]
                )
            except ValueError:
                continue
            if (
                features.shape[1] == content[key].features.shape[1]
                and np.isfinite(features).all()
                and boxes.shape[1] == 4
            ):
                seen[key] = features, (boxes / size).clip(0, 1)
    assert set(seen) == set(content), f"{set(content) - set(seen)} are not in the file"
    for key, (features, boxes) in seen.items():
        assert np.array_equal(content[key].features, features) and np.allclose(content[key].boxes, boxes), key


# --- folders of arrays ---


def _spoil_arrays(draw: Random, folder: Path, _) -> Path:
    folder = folder / "arrays"
    folder.mkdir()
    for number, key in enumerate(KEYS):
        features, boxes = arrays(number)
        np.savez(
            folder / f"{key}.npz",
            x=features,
            bbox=boxes * np.array([200, 100, 200, 100], np.float32),
            image_w=200,
            image_h=100,
        )
    place = draw.randrange(4)
    path, (features, boxes) = folder / f"{KEYS[place]}.npz", arrays(place)
    what = draw.randrange(6)
    if what == 0:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes()))
    elif what == 1:
        _other_members(draw, path, features, boxes)
    elif what == 2:
        _bomb(draw, path)
    else:
        path.unlink()
        path = path.with_suffix(".npy")
        about = {"bbox": (boxes * 100).tolist(), "image_width": 100, "image_height": 100}
        out = io.BytesIO()
        np.save(
            out,
            draw.choice(
                (
                    features,
                    features,
                    features.astype(np.float64),
                    features.astype("c8"),
                    features[0],
                    features[None],
                    np.array(["a", "b"]),
                )
            ),
        )
        path.write_bytes(out.getvalue() if what == 3 else _npy(draw, out.getvalue()))
        mutations.write(
            path.with_name(f"{path.stem}_info.json"), json.dumps(about) if what != 3 else mutations.json_(draw, about)
        )
    return path


def _npy(draw: Random, data: bytes) -> bytes:
    """A wrong header, or flipped bytes."""
    claims = (
        b"(3, 6)",
        b"(100000000, 6)",
        b"(3, 600000)",
        b"(-3, 6)",
        b"(3,)",
        b"()",
        b"(0, 6)",
        b"(3, 0)",
        b"(True, 6)",
        b"(10000000000000000000000, 6)",
    )
    kinds = (
        b"'|O'",
        b"'<f8'",
        b"'>f4'",
        b"'<i8'",
        b"'|S4'",
        b"'<M8[s]'",
        b"[('a', '<f4')]",
        b"'V4'",
        b"__import__('os')",
    )
    spoilt = draw.choice(
        (
            mutations.bytes_(draw, data),
            data.replace(b"'<f4'", draw.choice(kinds)),
            data.replace(b"(3, 6)", draw.choice(claims)).replace(b"(2, 6)", draw.choice(claims)),
        )
    )
    return spoilt if draw.random() < 0.7 else data[:6] + bytes([draw.randrange(256), draw.randrange(4)]) + data[8:]


def _other_members(draw: Random, path: Path, features: np.ndarray, boxes: np.ndarray) -> None:
    members: dict[str, Any] = {
        "x": features,
        "bbox": boxes * 100,
        "image_w": 100,
        "image_h": 100,
        "objects_id": np.arange(len(boxes)),
        "objects_conf": boxes[:, 0],
    }
    odd = (
        np.nan,
        np.inf,
        0,
        -1,
        "x",
        np.array([]),
        np.zeros((2, 3)),
        np.array(["a"]),
        np.array([None, {}], object),
        np.full(features.shape, np.nan),
        np.full(features.shape, 1e300),
        np.zeros((1, 2, 3)),
        features.astype("c16"),
        True,
    )
    for _ in range(draw.choice((1, 1, 2))):
        name = draw.choice(list(members))
        if draw.random() < 0.2:
            del members[name]
        else:
            members[name] = draw.choice(odd)
    np.savez(path, **members)


def _bomb(draw: Random, path: Path) -> None:
    """Zeros that unpack to more than the memory, or an array that claims such a size."""
    header = io.BytesIO()
    shape = draw.choice(((10**9, WIDTH), (10**6, 600), (3, WIDTH), (3, 10**9)))
    np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("x.npy", "w") as member:
            member.write(header.getvalue())
            member.write(bytes(draw.choice((0, 72, 1 << 20))))
        if draw.random() < 0.3:
            archive.writestr("../../x.npy", b"out")
    if draw.random() < 0.5:  # the archive's own list of sizes lies too
        data = path.read_bytes()
        path.write_bytes(
            data.replace(b"PK\x01\x02", b"PK\x01\x02", 1)[: -draw.choice((1, 4, 22))] + bytes(draw.choice((0, 4)))
        )


def _read_arrays(path: Path, _) -> Any:
    from mmgen_regions import NpzFolder

    return _stored(NpzFolder().build(), path.parent, path, path.parent.parent / "made.h5")


def _check_arrays(path: Path, content: Any, _) -> None:
    for number, key in enumerate(KEYS):
        features, boxes = arrays(number)
        if path.stem != key:
            assert key in content and np.array_equal(content[key].features, features), (
                f"{key} was lost to another's fault"
            )
            assert np.allclose(content[key].boxes, boxes, atol=1e-6), f"boxes of {key}"
    if path.stem in content:
        with np.load(path, allow_pickle=False) if path.suffix == ".npz" else _OneArray(path) as archive:
            name = next(name for name in ("x", "features", "feat") if name in archive)
            stored = archive[name]
        assert np.array_equal(content[path.stem].features, stored.astype(np.float32)), "other features than the file's"
        assert np.isrealobj(stored) and stored.dtype.kind in "fiu", f"{stored.dtype} taken for features"


class _OneArray:  # like np.load's archive
    def __init__(self, path: Path) -> None:
        self.array = np.load(path, allow_pickle=False)

    def __enter__(self) -> dict[str, np.ndarray]:
        return {"x": self.array}

    def __exit__(self, *_: object) -> None: ...
