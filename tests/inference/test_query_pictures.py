"""Pictures, files, keys and features in all accepted forms of a query; those of a batch are extracted together."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kit import stored
from PIL import Image

from mmgen.errors import DataError, UnavailableError
from mmgen.examples import All
from mmgen.inference.query import Query
from mmgen.inference.query_features import QueryFeatures
from mmgen.inference.query_pictures import as_file, as_picture
from mmgen.parts import Extractor, FailedImage, File, Picture, Record

ARRAYS = "the array of a picture must be (H, W), (H, W, 3) or (H, W, 4) of uint8, uint16 or bool"
CONVERT = (
    "convert values from 0 to 255 with array.astype('uint8'), values from 0 to 1 with (255 * array).astype('uint8')"
)
RANGE = "whose range is not known; scale the values to 0 to 255, and give 8 bits"
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)


@pytest.fixture
def photo(tmp_path) -> Path:
    Image.fromarray(PIXELS).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_every_form_of_a_picture_gives_the_same_pixels(photo):
    content = photo.read_bytes()
    forms = [
        photo,
        str(photo),
        content,
        bytearray(content),
        memoryview(content),
        Image.open(photo),
        PIXELS,
        Picture("own", lambda: Image.fromarray(PIXELS)),
        {"picture": content},
        {"picture": PIXELS, "boxes": [[0, 0, 1, 1]]},
    ]
    for form in forms:
        picture = as_picture(form, "query")
        assert np.array_equal(np.asarray(picture.load()), PIXELS), form
        assert picture.load().mode == "RGB"
    assert as_picture("photo.png", "query", photo.parent).key == "photo" and picture.boxes == [[0, 0, 1, 1]]


def test_an_array_is_read_by_its_type():
    """Of 16 bits and of bool too, grey and with alpha; 16 bits are rounded."""
    grey, clear = PIXELS[:, :, :1], np.zeros((6, 8, 1), np.uint8)
    for array, expected in (
        (PIXELS.astype(np.uint16) * 257, PIXELS),
        ((PIXELS.astype(np.uint16) * 257).astype(">u2"), PIXELS),
        (grey, grey.repeat(3, 2)),
        (grey[:, :, 0].astype(np.uint16) * 257, grey.repeat(3, 2)),
        (grey[:, :, 0] > 99, ((grey > 99) * np.uint8(255)).repeat(3, 2)),
        (np.ma.masked_array(PIXELS), PIXELS),
        (np.concatenate([PIXELS, clear], 2), np.full_like(PIXELS, 255)),
        (np.concatenate([PIXELS, clear + 255], 2), PIXELS),
        (np.concatenate([grey, clear], 2), np.full_like(PIXELS, 255)),
        (np.array([[128, 129, 65535]], np.uint16), np.array([[[0] * 3, [1] * 3, [255] * 3]])),
    ):
        assert np.array_equal(np.asarray(as_picture(array, "q").load()), expected), (array.shape, array.dtype)


def test_strings_of_a_stranger_are_neither_pictures_nor_files(photo):
    for value in (str(photo), "photo.png", f"file://{photo}", "/etc/passwd"):
        assert as_picture(value, "q", None) is None and as_file(value, "q", None) is None
    with pytest.raises(ValueError, match="no such file"):
        as_picture({"picture": str(photo), "boxes": [[0, 0, 1, 1]]}, "q", None)
    assert as_file("photo.png", "q", photo.parent) == File(str(photo), photo) and as_file("photo", "q") is None
    for value in (photo, photo.read_bytes(), File("x", photo)):
        assert as_file(value, "q", None if not isinstance(value, Path) else Path()).open().read() == photo.read_bytes()


def test_a_turned_photo_stands_upright_in_every_form(tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    Image.fromarray(PIXELS).save(tmp_path / "turned.png", exif=turned)
    path = tmp_path / "turned.png"
    shapes = {as_picture(form, "q").load().size for form in (path, path.read_bytes(), Image.open(path))}
    assert shapes == {(6, 8)}


def test_what_is_no_picture_is_none():
    assert [as_picture(value, "q") for value in ("no-file", "x" * 5000, "a\0b", 7, None, {"features": [[1]]})] == [
        None
    ] * 6


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *(
            (array, f"{ARRAYS}, not {array.shape} of {array.dtype}; {CONVERT}, and put the channels last")
            for array in (
                *(PIXELS / 255, PIXELS.astype(np.int64), PIXELS.transpose(2, 0, 1), PIXELS[None], PIXELS[0, 0]),
                np.zeros((6, 8, 5), np.uint8),
            )
        ),
        (Image.new("I", (2, 2)), f"the picture has pixels {RANGE}"),
        (Image.new("F", (2, 2)), f"the picture has pixels {RANGE}"),
        (PIXELS[:0, :5], "the picture has no pixels: it is 5 wide and 0 high"),
        (np.zeros((0, 0, 3), np.uint8), "the picture has no pixels: it is 0 wide and 0 high"),
        (Image.new("RGB", (0, 5)), "the picture has no pixels: it is 0 wide and 5 high"),
        ({"picture": "gone.jpg"}, "gone.jpg: no such file"),
        ({"picture": {"picture": PIXELS}}, "{'picture': array("),
        ({"picture": PIXELS, "box": []}, 'unknown key "box" beside "picture"; use "boxes"'),
    ],
)
def test_a_picture_that_is_given_wrongly_is_a_line(value, message):
    with pytest.raises(ValueError) as error:
        as_picture(value, "q")
    assert str(error.value).startswith(message)


def test_a_file_cut_short_is_a_line(photo, tmp_path):
    (tmp_path / "cut.png").write_bytes(photo.read_bytes()[:120])
    with pytest.raises(ValueError, match="^the picture's file is cut short or damaged; get it again$"):
        as_picture(Image.open(tmp_path / "cut.png"), "q")


def test_bytes_that_are_no_image_name_the_query():
    with pytest.raises(DataError) as error:
        as_picture(b"not an image", "this query").load()
    assert str(error.value).startswith("this query: not a readable image: expected one of BMP, GIF, ")


ROWS = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"
GOOD = [0, 0, 0.5, 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"boxes": [GOOD, [0.6, 0, 0.5, 1]]}, f"box 2 is [0.6, 0, 0.5, 1], which is no part of the picture; {ROWS}"),
        ({"boxes": [[0, 0, 640, 480]]}, f"box 1 is [0, 0, 640, 480], which is no part of the picture; {ROWS}"),
        ({"boxes": [[0, 0, float("nan"), 1]]}, f"box 1 is [0, 0, nan, 1], which is no part of the picture; {ROWS}"),
        ({"boxes": [["a", 0, 0, 1]]}, f"got boxes [['a', 0, 0, 1]]; {ROWS}"),
        ({"boxes": GOOD}, f"got boxes [0, 0, 0.5, 1]; {ROWS}"),
    ],
)
def test_boxes_are_checked(fields, message):
    with pytest.raises(ValueError) as error:
        as_picture({"picture": PIXELS, **fields}, "q")
    assert str(error.value) == message


QUERY = Query("q", {})


@pytest.fixture
def features(tmp_path):
    embedder = stored.embedder(features=stored.fill(tmp_path / "f.h5"))
    model = SimpleNamespace(embedders={"image": embedder})
    config = type(embedder.reader)  # stands for the config: no extractor is known
    return QueryFeatures(model, {"image": config}, "run", {})


class Means(Extractor):
    """Means of colours. Failed pictures come first; a picture of one pixel stops the extraction."""

    fingerprint = {"extractor": "means"}

    def __init__(self):
        self.batches = []

    def records(self, source, skip=frozenset()):
        self.batches.append([picture.key for picture in source])
        opened = [(picture.key, np.asarray(picture.load(), np.float32)) for picture in source]
        if any(pixels.size == 3 for _, pixels in opened):
            raise DataError("a picture is too small")
        yield from (FailedImage(key, f"{key}: is white") for key, pixels in opened if pixels.min() == 255)
        for key, pixels in opened:
            if pixels.min() < 255:
                yield Record(key, np.full((1, stored.D), pixels.mean(), np.float32), np.array([[0, 0, 1, 1]]))


def picture(level: int, size: int = 8) -> np.ndarray:
    return np.full((size, size, 3), level, np.uint8)


def test_a_key_and_features_are_taken_as_they_are(features):
    record = stored.record("own", 2)
    (key, _), (own, _), (several, shown) = features.resolve(
        "image", [(QUERY, "3"), (QUERY, record), (QUERY, ["3", "5"])]
    )
    assert key == "3" and np.array_equal(own.features, record.features)
    assert isinstance(several, All) and several.values == ("3", "5") and shown == []


def test_the_pictures_of_a_batch_are_extracted_together(features):
    """Whatever their keys are, and whatever fails."""
    extractor = features._extractors["image"] = Means()
    values = [picture(10), "3", All((picture(20), picture(30))), picture(255), picture(40)]
    (first, _), (key, _), (both, shown), (white, _), (last, _) = features.resolve(
        "image", [(QUERY, value) for value in values]
    )
    assert [len(batch) for batch in extractor.batches] == [5]
    assert [record.features[0, 0] for record in (first, *both.values, last)] == [10, 20, 30, 40]
    assert {record.key for record in (first, *both.values, last)} == {"q"} and key == "3" and len(shown) == 2
    assert isinstance(white, DataError) and str(white).endswith("is white")


def test_a_picture_that_stops_the_extraction_stops_no_other(features):
    extractor = features._extractors["image"] = Means()
    (small, _), (good, _) = features.resolve("image", [(QUERY, picture(1, size=1)), (QUERY, picture(10))])
    assert str(small) == "a picture is too small" and good.features[0, 0] == 10
    assert [len(batch) for batch in extractor.batches] == [2, 1, 1]


def test_what_is_neither_a_picture_nor_a_key(features, tmp_path):
    path = features.embedders["image"].reader.path
    for value, message in (
        ("nowhere.png", f"nowhere.png: no such file, and not a key of {path}"),
        ("https://x.org/a.png", "https://x.org/a.png: is a web address; download the picture, and give the file"),
        (str(tmp_path), f"{tmp_path}: is a folder; give one picture"),
        (7, "image: expected a picture, a key or features, but got 7"),
        (Record("r", np.full((1, 6), np.nan)), "image: image 'r': features are not finite, or too large for float32"),
    ):
        ((error, _),) = features.resolve("image", [(QUERY, value)])
        assert isinstance(error, DataError) and str(error) == message


def test_a_picture_needs_the_extractor_of_the_training(features):
    with pytest.raises(UnavailableError) as error:
        features.resolve("image", [(QUERY, Image.new("RGB", (4, 3)))])
    assert str(error.value) == (
        "run: 'image' was trained on features of roi, whose extractor is not known here; give a key of the feature "
        "store, or name the extractor with --set, in Python with sets of mmgen.load: inputs.image.extractor.type=NAME"
    )
