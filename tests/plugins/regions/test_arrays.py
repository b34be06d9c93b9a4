"""Published features in NPZ and NPY folders: pickles stay shut, damaged files cost their image only."""

import json

import numpy as np
import pytest
from kit.refusals import refusal
from mmgen_regions import NpzFolder

from mmgen.errors import DataError
from mmgen.features.extract import extract
from mmgen.parts import FailedImage

pytestmark = pytest.mark.slow

RNG = np.random.default_rng(0)
FEATURES = RNG.random((4, 3, 5), np.float32)
PIXELS = np.array([[0, 0, 50, 40], [10, 20, 100, 80], [5, 5, 6, 6]], np.float32)  # of an image of 100 x 80
RELATIVE = PIXELS / [100, 80, 100, 80]


def outcomes(config, path, skip=()):
    return list(config.build().records(path, frozenset(skip)))


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


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones((2, 3), complex), "must be real numbers, but their dtype is complex128"),
        (np.array([["1", "2"]]), "must be real numbers, but their dtype is <U1"),
        (np.ones((2, 3), bool), "must be real numbers, but their dtype is bool"),
    ],
)
def test_arrays_that_hold_no_features(tmp_path, values, message):
    (tmp_path / "a").mkdir()
    np.savez(tmp_path / "a/1.npz", x=values)
    assert message in refusal(extract, NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5")


def test_an_array_whose_header_is_no_header_costs_its_image_only(tmp_path):
    (tmp_path / "a").mkdir()
    for name in "12":
        np.save(tmp_path / f"a/{name}.npy", np.ones((2, 3)))
    data = (tmp_path / "a/1.npy").read_bytes()
    (tmp_path / "a/1.npy").write_bytes(data.replace(b"(2, 3)", b"(2, 3 "))
    done = extract(NpzFolder().build(), tmp_path / "a", tmp_path / "s.h5")
    assert done.written == 1 and [key for key, _ in done.broken] == ["1"]
