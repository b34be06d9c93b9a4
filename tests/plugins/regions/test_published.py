"""Published feature files: TSV, NPZ and NPY folders, HDF5. A damaged entry loses its image only."""

import base64
import gzip
import json
import pickle

import h5py
import numpy as np
import pytest
from mmgen_regions import BottomUpTsv, LxmertH5, NpzFolder

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


def tsv(path, *rows, ending="\n"):
    text = "\n".join(rows) + ending
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


# --- TSV ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["f.tsv", "f.tsv.gz"])
def test_tsv(tmp_path, name):
    path = tsv(tmp_path / name, row("COCO_val2014_000000000042"), row("7", FEATURES[1]), row("8", FEATURES[2]))
    first, second = outcomes(BottomUpTsv(), path, skip={"8"})
    assert (first.key, second.key) == ("42", "7")
    assert np.array_equal(second.features, FEATURES[1]) and np.allclose(first.boxes, RELATIVE)


def test_lxmert_tsv_with_names_of_classes(tmp_path):
    (tmp_path / "objects_vocab.txt").write_text("yolk\ngoggles,glasses\nbathtub\n")
    scores = [0.9, 0.5, 0.1]
    values = [
        "COCO_train2014_000000000009",
        80,
        100,
        b64([1, 0, 9], "<i8"),
        b64(scores),
        b64([0, 0, 0], "<i8"),
        b64(scores),
        3,
        b64(PIXELS),
        b64(FEATURES[0]),
    ]
    path = tsv(tmp_path / "f.tsv", "\t".join(map(str, values)))
    (record,) = outcomes(BottomUpTsv(labels=tmp_path / "objects_vocab.txt"), path)
    assert (
        record.labels == ("goggles", "yolk", "class 9")
        and np.allclose(record.scores, scores)
        and np.allclose(record.boxes, RELATIVE)
    )
    assert record.classes.names == ("yolk", "goggles", "bathtub")
    assert np.allclose(record.classes.distributions(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])  # the last has no name
    assert np.allclose(record.classes.probabilities, [[0.9], [0.5], [0]])
    (plain,) = outcomes(BottomUpTsv(), path)
    assert plain.labels is None and plain.classes is None


def test_tsv_with_a_header(tmp_path):
    path = tsv(tmp_path / "f.tsv", "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures", row("1"))
    assert [record.key for record in outcomes(BottomUpTsv(), path)] == ["1"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "2\t100\t80",
            "has 3 columns; expected 6 (image_id, image_w, image_h, num_boxes, boxes, features), or LXMERT's 10",
        ),
        (row("2", num_boxes="many"), "image_w, image_h and num_boxes must be numbers"),
        (row("2", num_boxes=4), "boxes has 12 numbers; expected 4 x 4"),
        (row("2", num_boxes=-3), "num_boxes is -3; it must not be negative"),
        (row("2", image_w=0), "the image size is 0 x 80 pixels; it must be positive"),
        (row("2", image_w="nan"), "the image size is nan x 80 pixels; it must be positive"),
        (row("2", boxes=b64(PIXELS)[:-3]), "boxes: not base64, or truncated"),
        (row("2", FEATURES.ravel()[:13]), "features has 13 numbers, which 3 boxes do not divide"),
        (
            row("2", encoded=base64.b64encode(b"12345").decode()),
            "features: 5 bytes are not a whole number of 4-byte values",
        ),
        (row("2", encoded=""), "features has 0 numbers, which 3 boxes do not divide"),
    ],
)
def test_damaged_lines_cost_their_image_only(tmp_path, bad, message):
    path = tsv(tmp_path / "f.tsv", row("1"), bad, row("3"))
    records = outcomes(BottomUpTsv(), path)
    assert [record.key for record in records] == ["1", "2", "3"]
    assert records[1] == FailedImage("2", f"{path}:2: {message}")


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
    summary = extract(BottomUpTsv().build(), tsv(tmp_path / "f.tsv", *rows), tmp_path / "s.h5")
    assert (summary.written, summary.duplicates, summary.clipped) == (3, 1, 1)
    assert [(key, reason.rpartition(": ")[2][:30]) for key, reason in summary.broken] == [
        ("2", "features are not finite (NaN o"),
        ("4", "features are 4 wide, those bef"),
        ("garbage", "has 1 columns; expected 6 (ima"),
    ]
    assert list(FeatureStore(tmp_path / "s.h5")) == ["1", "3", "5"]


def test_truncated_gzip_keeps_what_was_read_and_goes_on_with_the_whole_file(tmp_path):
    big = [RNG.random((3, 3000)).astype(np.float32) for _ in range(30)]
    path = tsv(tmp_path / "f.tsv.gz", *(row(str(number), values) for number, values in enumerate(big)))
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 2 // 3])
    with pytest.raises(DataError) as error:
        extract(BottomUpTsv().build(), path, tmp_path / "s.h5")
    text = str(error.value)
    assert (
        text.startswith(f"{path}:")
        and "the file is truncated or damaged here (Compressed file ended" in text
        and "\n" not in text
    )
    stored = int(text.split("download the file again; ")[1].split(" images are kept in")[0])
    assert 15 <= stored <= 20
    path.write_bytes(content)
    summary = extract(BottomUpTsv().build(), path, tmp_path / "s.h5")
    assert (summary.written, summary.skipped) == (30 - stored, stored)


def test_not_a_tsv(tmp_path):
    with pytest.raises(DataError, match="no.tsv: no such file"):
        outcomes(BottomUpTsv(), tmp_path / "no.tsv")
    (tmp_path / "f.tsv.gz").write_text("plain text")
    with pytest.raises(DataError, match="f.tsv.gz:1: the file is truncated or damaged here .Not a gzipped file"):
        outcomes(BottomUpTsv(), tmp_path / "f.tsv.gz")


def test_real_tsv(real_data, tmp_path):
    """505 real images: all are read, boxes are inside the image, and half precision loses little."""
    path = real_data / "vqg_coco" / "regions.tsv.gz"
    summary = extract(BottomUpTsv(model="mobilenet").build(), path, tmp_path / "s.h5")
    assert (summary.written, summary.broken, summary.duplicates) == (505, (), 0)
    store = FeatureStore(tmp_path / "s.h5")
    about = store.describe()
    assert (about["images"], about["regions per image"], about["width"]) == (505, [36, 36.0, 36], 1024)
    record = next(BottomUpTsv().build().records(path))
    assert np.allclose(store.read(record.key).features, record.features, rtol=1e-3, atol=1e-3)
    boxes = store.read(record.key).boxes
    assert boxes.min() >= 0 and boxes.max() <= 1 and (boxes[:, :2] < boxes[:, 2:]).all()


# --- NPZ and NPY ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("background", [0, 1])
def test_npz_with_distributions(tmp_path, background):
    (tmp_path / "vocab.txt").write_text("yolk\ngoggles\n")
    chances = np.array([[0.6, 0.3], [0.1, 0.2], [0, 1]])
    distributions = np.concatenate([1 - chances.sum(1, keepdims=True), chances], 1)[:, 1 - background :]
    np.savez(tmp_path / "a.npz", x=FEATURES[0], cls_prob=distributions)
    np.savez(tmp_path / "b.npz", x=FEATURES[0], cls_prob=np.ones((3, 7)) / 7)
    first, second = outcomes(NpzFolder(labels=tmp_path / "vocab.txt"), tmp_path)
    assert first.classes.ids.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert np.allclose(first.classes.probabilities, [[0.6, 0.3], [0.2, 0.1], [1, 0]])
    assert second.reason.endswith("b.npz: cls_prob has shape (3, 7), but there are 2 class names")


def test_npz_folder(tmp_path):
    for number in range(2):
        info = {"objects_id": [1], "a dictionary": "is a pickle in an NPZ"}
        np.savez_compressed(
            tmp_path / f"COCO_val2014_{number:012d}.npz",
            x=FEATURES[number],
            bbox=PIXELS,
            num_bbox=3,
            image_h=80,
            image_w=100,
            info=info,
        )
    records = outcomes(NpzFolder(), tmp_path)
    assert [record.key for record in records] == ["0", "1"] and NpzFolder().build().count(tmp_path) == 2
    assert np.array_equal(records[1].features, FEATURES[1]) and np.allclose(records[1].boxes, RELATIVE)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('a pickle was opened')",))


def test_pickles_are_never_opened(tmp_path, caplog):
    np.savez(tmp_path / "a.npz", x=np.array([Bomb()], dtype=object))
    np.savez(tmp_path / "b.npz", x=FEATURES[0], info=np.array(Bomb(), dtype=object))
    np.save(tmp_path / "c.npy", FEATURES[1])
    np.save(tmp_path / "c_info.npy", np.array(Bomb(), dtype=object))
    np.save(tmp_path / "d.npy", np.array([Bomb()], dtype=object))
    with caplog.at_level("WARNING", "mmgen"):
        a, b, c, d = outcomes(NpzFolder(), tmp_path)
    message = "contains Python objects instead of numbers; they could run any program and are never opened"
    assert (a, d) == (
        FailedImage("a", f"{tmp_path}/a.npz: {message}"),
        FailedImage("d", f"{tmp_path}/d.npy: {message}"),
    )
    assert np.array_equal(b.features, FEATURES[0]) and np.array_equal(c.features, FEATURES[1]) and c.boxes is None
    assert caplog.messages == [
        f"{tmp_path}/c_info.npy: pickles are never opened because they could run any program; boxes are unknown "
        "without _info.json"
    ]


@pytest.mark.parametrize(
    "spoil",
    [lambda content: b"\x80\x04" + content[2:], lambda content: b"", lambda content: b"hello" * 9],
    ids=["first bytes", "empty", "text"],
)
@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_damaged_arrays_are_reported_without_advice_to_open_a_pickle(tmp_path, ending, spoil):
    path = tmp_path / f"a.{ending}"
    (np.savez if ending == "npz" else np.save)(path, FEATURES[0])
    path.write_bytes(spoil(path.read_bytes()))
    assert outcomes(NpzFolder(), tmp_path) == [
        FailedImage("a", f"{path}: does not begin like a .{ending} file; the file is damaged or has another format")
    ]


def test_npy_with_boxes_in_json(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES[0])
    (tmp_path / "a_info.json").write_text(json.dumps({"bbox": PIXELS.tolist(), "image_width": 100, "image_height": 80}))
    (record,) = outcomes(NpzFolder(), tmp_path)
    assert np.allclose(record.boxes, RELATIVE)


def test_damaged_arrays_cost_their_image_only(tmp_path):
    np.savez(tmp_path / "whole.npz", x=FEATURES[0])
    np.savez(tmp_path / "other.npz", y=FEATURES[0])
    np.savez(tmp_path / "sizeless.npz", x=FEATURES[0], bbox=PIXELS)
    (tmp_path / "text.npz").write_text("hello")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "whole.npz").read_bytes()[:100])
    reasons = {
        outcome.key: outcome.reason.removeprefix(f"{tmp_path}/")
        for outcome in outcomes(NpzFolder(), tmp_path)
        if isinstance(outcome, FailedImage)
    }
    assert reasons.keys() == {"other", "sizeless", "text", "cut"}
    assert reasons["other"] == "other.npz: has no features (x, features, feat); its arrays are y"
    assert reasons["sizeless"] == "sizeless.npz: has boxes but no image size (image_w, image_h)"


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1 << 17, 1 << 11), np.float32))  # 1 GB in 1 MB
    with (tmp_path / "hollow.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 4)})
    bomb, hollow = outcomes(NpzFolder(), tmp_path)
    size = "'x.npy' is 1073741952 bytes large; at most "
    assert bomb.reason.startswith(f"{tmp_path}/bomb.npz: {size}")
    assert isinstance(hollow, FailedImage)


def test_no_arrays(tmp_path):
    with pytest.raises(DataError, match="contains no .npz or .npy files"):
        outcomes(NpzFolder(), tmp_path)
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a folder; give a folder of .npz or .npy files"):
        outcomes(NpzFolder(), tmp_path / "f")


# --- HDF5 -----------------------------------------------------------------------------------------------------------


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
    assert config.build().count(path) == 3


def test_hdf5_with_differing_regions(tmp_path):
    flat, ranges = FEATURES.reshape(12, 5), np.array([[0, 3], [3, 4], [4, 99]])
    config, path = lxmert(
        tmp_path, ["a", "b", "c"], image_features=flat, pos_boxes=ranges, spatial_features=np.concatenate([SPATIAL] * 4)
    )
    a, b, c = outcomes(config, path)
    assert a.features.shape == (3, 5) and b.features.shape == (1, 5) and np.array_equal(b.features, flat[3:4])
    assert c == FailedImage("c", f"{path}: its rows in pos_boxes are 4 to 99, but the file has 12 rows")


def test_files_that_are_not_hdf5(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, something=FEATURES)
    with pytest.raises(DataError, match="f.hdf5: not an HDF5 file of features, or damaged: image_features must be"):
        outcomes(config, path)
    path.write_text("hello")
    with pytest.raises(DataError, match="f.hdf5: not an HDF5 file of features, or damaged: "):
        outcomes(config, path)


def test_hdf5_links_are_not_followed(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, image_features=h5py.ExternalLink("other.h5", "/x"))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = FEATURES
    with pytest.raises(DataError, match="'image_features' is a link, which is not followed"):
        outcomes(config, path)


def test_invalid_indexes(tmp_path):
    (tmp_path / "imgid2idx.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(
        DataError, match="imgid2idx.pkl: a pickle could run any program and is not opened; if you trust the file"
    ):
        LxmertH5(index=tmp_path / "imgid2idx.pkl").build()
    with pytest.raises(DataError, match="no such file; 'index' must be a JSON file"):
        LxmertH5(index=tmp_path / "no.json").build()
    (tmp_path / "bad.json").write_text('{"1": "zero"}')
    with pytest.raises(DataError, match="must be a JSON object of image id to row, or a list of image ids"):
        LxmertH5(index=tmp_path / "bad.json").build()
