"""Published features in TSV: damaged lines cost their image only."""

import base64
import gzip

import numpy as np
import pytest
from mmgen_regions import BottomUpTsv

from mmgen.features.extract import extract
from mmgen.features.store import FeatureStore

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
    (record,) = outcomes(BottomUpTsv(class_names=tmp_path / "objects_vocab.txt"), path)
    assert (
        record.region_names == ("goggles", "yolk", "class 9")
        and np.allclose(record.scores, scores)
        and np.allclose(record.boxes, RELATIVE)
    )
    assert record.classes.names == ("yolk", "goggles", "bathtub")
    assert np.allclose(record.classes.distributions(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])  # the last has no name
    assert np.allclose(record.classes.probabilities, [[0.9], [0.5], [0]])
    (plain,) = outcomes(BottomUpTsv(), path)
    assert plain.region_names is None and plain.classes is None


def test_tsv_with_a_header(tmp_path):
    path = tsv(tmp_path / "f.tsv", "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures", row("1"))
    assert [record.key for record in outcomes(BottomUpTsv(), path)] == ["1"]


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
        ("4", "features have width 4, but tho"),
        ("garbage", "has 1 columns; expected 6 (ima"),
    ]
    assert list(FeatureStore(tmp_path / "s.h5")) == ["1", "3", "5"]


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
