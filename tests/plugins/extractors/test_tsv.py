"""Published features in TSV: damaged lines cost their image only."""

import base64
import gzip

import numpy as np
import pytest
from click.testing import CliRunner
from mmgen_extractors import BottomUpTsv

from mmgen.cli import main
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


SCORES = [0.9, 0.5, 0.1]


def lxmert_row(key):
    classes = [b64([1, 0, 9], "<i8"), b64(SCORES), b64([0, 0, 0], "<i8"), b64(SCORES)]
    return "\t".join(map(str, [key, 80, 100, *classes, 3, b64(PIXELS), b64(FEATURES[0])]))


def test_lxmert_tsv_with_names_of_classes(tmp_path):
    (tmp_path / "objects_vocab.txt").write_text("yolk\ngoggles,glasses\nbathtub\n")
    path = tsv(tmp_path / "f.tsv", lxmert_row("COCO_train2014_000000000009"))
    (record,) = outcomes(BottomUpTsv(class_names=tmp_path / "objects_vocab.txt"), path)
    assert (
        record.region_names == ("goggles", "yolk", "class 9")
        and np.allclose(record.scores, SCORES)
        and np.allclose(record.boxes, RELATIVE)
    )
    assert record.classes.names == ("yolk", "goggles", "bathtub")
    assert np.allclose(record.classes.distributions(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])  # the last has no name
    assert np.allclose(record.classes.probabilities, [[0.9], [0.5], [0]])
    (plain,) = outcomes(BottomUpTsv(), path)
    assert plain.region_names is None and plain.classes is None


def test_headers_and_blank_lines_are_no_images(tmp_path):
    header = "image_id\timage_w\timage_h\tnum_boxes\tboxes\tfeatures"
    path = tsv(tmp_path / "f.tsv", "", header, row("1"), "  ", header, row("2"), "")
    assert [outcome.key for outcome in outcomes(BottomUpTsv(), path)] == ["1", "2"]


def test_a_mark_of_utf_8_is_no_part_of_a_key(tmp_path):
    path = tsv(tmp_path / "f.tsv", "\ufeff" + row("COCO_val2014_000000000042"))
    assert [record.key for record in outcomes(BottomUpTsv(), path)] == ["42"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_w": "inf"}, "the image size is inf x 80 pixels; it must be positive and finite"),
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


def import_(path, store):
    arguments = ["features", "import", str(path), str(store), "--type", "bottom_up_tsv"]
    return CliRunner().invoke(main, arguments)


def test_what_an_import_leaves_out_is_named_with_its_line(tmp_path):
    rows = [row("COCO_val2014_000000000001"), row("1"), row("2", FEATURES[0][:, :4]), row("3", np.full((3, 5), np.nan))]
    path = tsv(tmp_path / "f.tsv", *rows, row("4"))
    done = import_(path, tmp_path / "s")
    assert done.exit_code == 0
    assert [line.partition(" features")[0] for line in done.output.splitlines()[-3:]] == [
        f"skipped 2: {path}:3: image '2':",
        f"skipped 3: {path}:4: image '3':",
        f"{tmp_path}/s: 2 images written, 0 already in the store, 2 broken, 1 duplicates",
    ]


def test_more_failures_than_images_are_an_error(tmp_path):
    path, store = tsv(tmp_path / "f.tsv", row("1"), "garbage", row("2", encoded="x")), tmp_path / "s"
    done = import_(path, store)
    assert done.exit_code == 1 and list(FeatureStore(store)) == ["1"]
    assert done.stderr.splitlines()[-1] == (
        f"error: {store}: 2 of 3 images failed, first garbage: {path}:2: has 1 columns; expected 6 (image_id, image_w, "
        "image_h, num_boxes, boxes, features), or LXMERT's 10; correct the source, or the extractor's settings, and "
        "run the same command again"
    )
    tsv(path, row("1"), "garbage", row("2"))
    assert import_(path, store).exit_code == 0


def test_real_tsv(real_data, tmp_path):
    """505 real images: all are read, boxes are inside the image, and half precision loses little."""
    path = real_data / "vqg_coco" / "regions.tsv.gz"
    summary = extract(BottomUpTsv(model="mobilenet").build(), path, tmp_path / "s")
    assert (summary.written, summary.broken, summary.duplicates) == (505, (), 0)
    store = FeatureStore(tmp_path / "s")
    about = store.describe()
    assert (about["images"], about["regions per image"], about["width"]) == (505, [36, 36.0, 36], 1024)
    record = next(BottomUpTsv().build().records(path))
    assert np.allclose(store.read(record.key).features, record.features, rtol=1e-3, atol=1e-3)
    boxes = store.read(record.key).boxes
    assert boxes.min() >= 0 and boxes.max() <= 1 and (boxes[:, :2] < boxes[:, 2:]).all()
