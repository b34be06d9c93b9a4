"""Published features in TSV, NPZ and NPY folders, and HDF5 with an index; damaged rows cost their image only."""

import base64
import gzip
import json

import h5py
import numpy as np
import pytest
from mmgen_extractors import BottomUpTsv, LxmertH5, NpzFolder

from mmgen.errors import DataError
from mmgen.features.extract import extract
from mmgen.features.store import FeatureStore
from mmgen.parts import FailedImage

pytestmark = pytest.mark.slow


RNG = np.random.default_rng(0)
FEATURES = RNG.random((4, 3, 5), np.float32)
PIXELS = np.array([[0, 0, 50, 40], [10, 20, 100, 80], [5, 5, 6, 6]], np.float32)  # of an image of 100 x 80
RELATIVE = PIXELS / [100, 80, 100, 80]


def b64(values, kind="<f4"):
    return base64.b64encode(np.asarray(values, kind).tobytes()).decode()


def row(key, features=FEATURES[0], encoded=None, **changes):
    values = {"image_id": key, "image_w": 100, "image_h": 80, "num_boxes": 3, "boxes": b64(PIXELS), **changes}
    return "\t".join([*map(str, values.values()), b64(features) if encoded is None else encoded])


def tsv(path, *rows):
    text = "".join(f"{row}\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


@pytest.mark.parametrize("name", ["f.tsv", "f.tsv.gz"])
def test_tsv(tmp_path, name):
    """A mark of UTF-8, headers and blank lines are no images."""
    header = "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures"
    rows = "\ufeff" + row("COCO_val2014_000000000042"), header, "  ", row("7", FEATURES[1]), row("8", FEATURES[2]), ""
    path = tsv(tmp_path / name, *rows)
    first, second = outcomes(BottomUpTsv(), path, skip={"8"})
    assert (first.key, second.key) == ("42", "7")
    assert np.array_equal(second.features, FEATURES[1]) and np.allclose(first.boxes, RELATIVE)


SCORES = [0.9, 0.5, 0.1]


def lxmert_row(key):
    classes = [b64([1, 0, 9], "<i8"), b64(SCORES), b64([0, 0, 0], "<i8"), b64(SCORES)]
    return "\t".join(map(str, [key, 80, 100, *classes, 3, b64(PIXELS), b64(FEATURES[0])]))


def test_lxmert_tsv_with_names_of_classes(tmp_path):
    (tmp_path / "objects_vocab.txt").write_text("yolk\ngoggles,glasses\nbathtub\n")
    path = tsv(tmp_path / "f.tsv", lxmert_row("COCO_train2014_000000000009"))
    (record,) = outcomes(BottomUpTsv(class_names=tmp_path / "objects_vocab.txt"), path)
    assert record.region_names == ("goggles", "yolk", "class 9")
    assert np.allclose(record.scores, SCORES) and np.allclose(record.boxes, RELATIVE)
    assert record.classes.names == ("yolk", "goggles", "bathtub")
    assert np.allclose(record.classes.distributions(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])  # the last has no name
    assert np.allclose(record.classes.probabilities, [[0.9], [0.5], [0]])
    (plain,) = outcomes(BottomUpTsv(), path)
    assert plain.region_names is None and plain.classes is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_w": 0}, "the image size is 0 x 80 pixels; it must be positive and finite"),
        ({"boxes": b64(RELATIVE)}, "no box ends after 1 pixels; boxes must be in pixels, not relative to the image"),
    ],
)
def test_boxes_that_would_lose_their_places_are_refused(tmp_path, changes, message):
    path = tsv(tmp_path / "f.tsv", row("1", **changes))
    (failed,) = outcomes(BottomUpTsv(), path)
    assert failed.reason == f"{path}:1: {message}"


def test_tsv_into_a_store_with_everything_wrong_counted(tmp_path):
    outside = PIXELS + [0, 0, 60, 0]
    rows = [
        row("1"),
        row("1"),
        row("2", np.full((3, 5), np.nan)),
        row("3", boxes=b64(outside)),
        row("4", FEATURES[0][:, :4]),
        "garbage",
        row("5"),
    ]
    summary = extract(BottomUpTsv().build(), tsv(tmp_path / "f.tsv", *rows), tmp_path / "s")
    assert (summary.written, summary.duplicates) == (3, 1)
    assert [(key, reason.rpartition(": ")[2][:30]) for key, reason in summary.broken] == [
        ("2", "features are not finite, or to"),
        ("4", "features must be numbers (3, 5"),
        ("garbage", "has 1 columns; expected 6 (ima"),
    ]
    assert list(FeatureStore(tmp_path / "s")) == ["1", "3", "5"]


def test_real_tsv(real_data, tmp_path):
    """All 505 real images are read."""
    path = real_data / "vqg_coco" / "regions.tsv.gz"
    summary = extract(BottomUpTsv(model="mobilenet").build(), path, tmp_path / "s")
    assert (summary.written, summary.broken, summary.duplicates) == (505, (), 0)
    about = FeatureStore(tmp_path / "s").describe()
    assert (about["images"], about["regions per image"], about["width"]) == (505, [36, 36.0, 36], 1024)


@pytest.mark.parametrize("background", [0, 1])
def test_npz_with_distributions(tmp_path, background):
    (tmp_path / "vocab.txt").write_text("yolk\ngoggles\n")
    chances = np.array([[0.6, 0.3], [0.1, 0.2], [0, 1]])
    distributions = np.concatenate([1 - chances.sum(1, keepdims=True), chances], 1)[:, 1 - background :]
    np.savez(tmp_path / "a.npz", x=FEATURES[0], cls_prob=distributions)
    np.savez(tmp_path / "b.npz", x=FEATURES[0], cls_prob=np.ones((3, 7)) / 7)
    first, second = outcomes(NpzFolder(class_names=tmp_path / "vocab.txt"), tmp_path)
    assert first.classes.ids.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert np.allclose(first.classes.probabilities, [[0.6, 0.3], [0.2, 0.1], [1, 0]])
    assert second.reason.endswith("b.npz: cls_prob has shape (3, 7), but there are 2 class names")


def test_npz_folder(tmp_path):
    for number in range(2):
        arrays = {"x": FEATURES[number], "bbox": PIXELS, "num_bbox": 3, "image_h": 80, "image_w": 100}
        info = {"objects_id": [1], "a dictionary": "is a pickle in an NPZ"}
        np.savez_compressed(tmp_path / f"COCO_val2014_{number:012d}.npz", **arrays, info=info)
    records = outcomes(NpzFolder(), tmp_path)
    assert [record.key for record in records] == ["0", "1"]
    assert np.array_equal(records[1].features, FEATURES[1]) and np.allclose(records[1].boxes, RELATIVE)


def test_npy_with_boxes_in_json(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES[0])
    (tmp_path / "a_info.json").write_text(json.dumps({"bbox": PIXELS.tolist(), "image_width": 100, "image_height": 80}))
    (record,) = outcomes(NpzFolder(), tmp_path)
    assert np.allclose(record.boxes, RELATIVE)


def test_no_arrays(tmp_path):
    with pytest.raises(DataError, match="contains no .npz or .npy files"):
        outcomes(NpzFolder(), tmp_path)
    with pytest.raises(DataError, match="gone: cannot be read: No such file"):
        outcomes(NpzFolder(class_names=tmp_path / "gone"), tmp_path)


def lxmert(tmp_path, index, **datasets):
    (tmp_path / "index.json").write_text(json.dumps(index))
    with h5py.File(tmp_path / "f.hdf5", "w") as file:
        for name, values in datasets.items():
            file[name] = values
    return LxmertH5(index=tmp_path / "index.json"), tmp_path / "f.hdf5"


SPATIAL = np.concatenate([RELATIVE, np.zeros((3, 2))], 1).astype(np.float32)


def test_hdf5_with_as_many_regions_everywhere(tmp_path):
    config, path = lxmert(
        tmp_path,
        {"42": 1, "7": 0, "9": 12},
        image_features=FEATURES,
        spatial_features=np.stack([SPATIAL] * 4),
        image_bb=np.stack([PIXELS] * 4),
    )
    a, b, c = outcomes(config, path)
    assert (a.key, b.key) == ("42", "7") and np.array_equal(a.features, FEATURES[1]) and np.allclose(a.boxes, RELATIVE)
    assert c == FailedImage("9", f"{path}: its row in the index is 12, but the file has 4 rows")


def test_hdf5_with_differing_regions(tmp_path):
    flat, ranges = FEATURES.reshape(12, 5), np.array([[0, 3], [3, 4], [4, 99]])
    config, path = lxmert(
        tmp_path, ["a", "b", "c"], image_features=flat, pos_boxes=ranges, spatial_features=np.concatenate([SPATIAL] * 4)
    )
    a, b, c = outcomes(config, path)
    assert a.features.shape == (3, 5) and b.features.shape == (1, 5) and np.array_equal(b.features, flat[3:4])
    assert c == FailedImage("c", f"{path}: its rows in pos_boxes are 4 to 99, but the file has 12 rows")
