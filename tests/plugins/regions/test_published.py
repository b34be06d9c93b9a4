"""Published feature files as they are: TSV, NPZ and NPY folders, HDF5; damaged ones cost the damaged image only."""

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
    assert [each.key for each in outcomes(BottomUpTsv(), path)] == ["1"]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            "2\t100\t80",
            "3 columns; there must be 6 (image_id, image_w, image_h, num_boxes, boxes, features), or LXMERT's 10",
        ),
        (row("2", num_boxes="many"), "image_w, image_h and num_boxes must be numbers"),
        (row("2", num_boxes=4), "boxes hold 12 numbers, not 4 x 4"),
        (row("2", num_boxes=-3), "num_boxes is -3"),
        (row("2", image_w=0), "the image is 0 x 80 pixels large"),
        (row("2", image_w="nan"), "the image is nan x 80 pixels large"),
        (row("2", boxes=b64(PIXELS)[:-3]), "boxes: not base64, or cut off"),
        (row("2", FEATURES.ravel()[:13]), "features hold 13 numbers, which cannot be shared out over 3 boxes"),
        (
            row("2", encoded=base64.b64encode(b"12345").decode()),
            "features: 5 bytes are not a whole number of 4-byte values",
        ),
        (row("2", encoded=""), "features hold 0 numbers, which cannot be shared out over 3 boxes"),
    ],
)
def test_damaged_lines_cost_their_image_only(tmp_path, bad, message):
    path = tsv(tmp_path / "f.tsv", row("1"), bad, row("3"))
    found = outcomes(BottomUpTsv(), path)
    assert [each.key for each in found] == ["1", "2", "3"]
    assert found[1] == FailedImage("2", f"{path}:2: {message}")


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
        ("garbage", "1 columns; there must be 6 (im"),
    ]
    assert list(FeatureStore(tmp_path / "s.h5")) == ["1", "3", "5"]


def test_truncated_gzip_keeps_what_was_read_and_goes_on_with_the_whole_file(tmp_path):
    big = [RNG.random((3, 3000)).astype(np.float32) for _ in range(30)]
    path = tsv(tmp_path / "f.tsv.gz", *(row(str(number), each) for number, each in enumerate(big)))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(DataError) as error:
        extract(BottomUpTsv().build(), path, tmp_path / "s.h5")
    text = str(error.value)
    assert (
        text.startswith(f"{path}:")
        and "the file breaks off or is damaged here (Compressed file ended" in text
        and "\n" not in text
    )
    kept = int(text.split("get it again; ")[1].split(" images are kept in")[0])
    assert 15 <= kept <= 20
    path.write_bytes(whole)
    summary = extract(BottomUpTsv().build(), path, tmp_path / "s.h5")
    assert (summary.written, summary.skipped) == (30 - kept, kept)


def test_not_a_tsv(tmp_path):
    with pytest.raises(DataError, match="no.tsv: no such file"):
        outcomes(BottomUpTsv(), tmp_path / "no.tsv")
    (tmp_path / "f.tsv.gz").write_text("plain text")
    with pytest.raises(DataError, match="f.tsv.gz:1: the file breaks off or is damaged here .Not a gzipped file"):
        outcomes(BottomUpTsv(), tmp_path / "f.tsv.gz")


def test_real_tsv(real_data, tmp_path):
    """505 real images: all arrive, boxes lie in the image, and half precision costs little."""
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
    whole = np.concatenate([1 - chances.sum(1, keepdims=True), chances], 1)[:, 1 - background :]
    np.savez(tmp_path / "a.npz", x=FEATURES[0], cls_prob=whole)
    np.savez(tmp_path / "b.npz", x=FEATURES[0], cls_prob=np.ones((3, 7)) / 7)
    first, second = outcomes(NpzFolder(labels=tmp_path / "vocab.txt"), tmp_path)
    assert first.classes.ids.tolist() == [[0, 1], [1, 0], [1, 0]]
    assert np.allclose(first.classes.probabilities, [[0.6, 0.3], [0.2, 0.1], [1, 0]])
    assert second.reason.endswith("b.npz: cls_prob is of shape (3, 7), and there are 2 names of classes")


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
    found = outcomes(NpzFolder(), tmp_path)
    assert [each.key for each in found] == ["0", "1"] and NpzFolder().build().count(tmp_path) == 2
    assert np.array_equal(found[1].features, FEATURES[1]) and np.allclose(found[1].boxes, RELATIVE)


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
    told = "holds Python objects, not numbers; they could run any program, and are never opened"
    assert (a, d) == (FailedImage("a", f"{tmp_path}/a.npz: {told}"), FailedImage("d", f"{tmp_path}/d.npy: {told}"))
    assert np.array_equal(b.features, FEATURES[0]) and np.array_equal(c.features, FEATURES[1]) and c.boxes is None
    assert caplog.messages == [
        f"{tmp_path}/c_info.npy: a pickle, which could run any program, is never opened; boxes stay unknown without "
        "_info.json"
    ]


@pytest.mark.parametrize(
    "spoil",
    [lambda whole: b"\x80\x04" + whole[2:], lambda whole: b"", lambda whole: b"hello" * 9],
    ids=["first bytes", "empty", "text"],
)
@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_damaged_arrays_are_told_of_without_advice_to_open_a_pickle(tmp_path, ending, spoil):
    path = tmp_path / f"a.{ending}"
    (np.savez if ending == "npz" else np.save)(path, FEATURES[0])
    path.write_bytes(spoil(path.read_bytes()))
    assert outcomes(NpzFolder(), tmp_path) == [
        FailedImage("a", f"{path}: does not begin as .{ending} files do; it is damaged, or something else")
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
        each.key: each.reason.removeprefix(f"{tmp_path}/")
        for each in outcomes(NpzFolder(), tmp_path)
        if isinstance(each, FailedImage)
    }
    assert reasons.keys() == {"other", "sizeless", "text", "cut"}
    assert reasons["other"] == "other.npz: holds no features (x, features, feat); it has y"
    assert reasons["sizeless"] == "sizeless.npz: has boxes but not the image's size (image_w, image_h)"


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", x=np.zeros((1 << 17, 1 << 11), np.float32))  # 1 GB in 1 MB
    with (tmp_path / "hollow.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (1 << 40, 4)})
    bomb, hollow = outcomes(NpzFolder(), tmp_path)
    assert bomb.reason == f"{tmp_path}/bomb.npz: 'x.npy' would be 1073741952 bytes large"
    assert isinstance(hollow, FailedImage)


def test_no_arrays(tmp_path):
    with pytest.raises(DataError, match="holds no .npz and no .npy files"):
        outcomes(NpzFolder(), tmp_path)
    (tmp_path / "f").touch()
    with pytest.raises(DataError, match="not a folder of .npz or .npy files"):
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
    assert c == FailedImage("9", f"{path}: the index gives it row 12, and there are 4")
    assert config.build().count(path) == 3


def test_hdf5_with_differing_regions(tmp_path):
    flat, ranges = FEATURES.reshape(12, 5), np.array([[0, 3], [3, 4], [4, 99]])
    config, path = lxmert(
        tmp_path, ["a", "b", "c"], image_features=flat, pos_boxes=ranges, spatial_features=np.concatenate([SPATIAL] * 4)
    )
    a, b, c = outcomes(config, path)
    assert a.features.shape == (3, 5) and b.features.shape == (1, 5) and np.array_equal(b.features, flat[3:4])
    assert c == FailedImage("c", f"{path}: pos_boxes gives it the rows 4 to 99, and there are 12")


def test_hdf5_that_is_none(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, something=FEATURES)
    with pytest.raises(DataError, match="f.hdf5: not features in HDF5, or damaged: image_features must be"):
        outcomes(config, path)
    path.write_text("hello")
    with pytest.raises(DataError, match="f.hdf5: not features in HDF5, or damaged: "):
        outcomes(config, path)


def test_hdf5_links_are_not_followed(tmp_path):
    config, path = lxmert(tmp_path, {"1": 0}, image_features=h5py.ExternalLink("other.h5", "/x"))
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["x"] = FEATURES
    with pytest.raises(DataError, match="'image_features' is a link, which is not followed"):
        outcomes(config, path)


def test_indexes_that_are_none(tmp_path):
    (tmp_path / "imgid2idx.pkl").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(
        DataError, match="imgid2idx.pkl: a pickle could run any program and is not opened; write it as JSON once"
    ):
        LxmertH5(index=tmp_path / "imgid2idx.pkl").build()
    with pytest.raises(DataError, match="no such file; index is a JSON file"):
        LxmertH5(index=tmp_path / "no.json").build()
    (tmp_path / "bad.json").write_text('{"1": "zero"}')
    with pytest.raises(DataError, match="must be a table of image id to row, or a list of image ids"):
        LxmertH5(index=tmp_path / "bad.json").build()
