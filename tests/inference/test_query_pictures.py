"""Pictures and features in all accepted forms of a query."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from mmgen.errors import DataError
from mmgen.inference.query_pictures import as_picture, as_record
from mmgen.parts import Picture, Record

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
        io.BytesIO(content),
        photo.open("rb"),
        Image.open(photo),
        PIXELS,
        Picture("own", lambda: Image.fromarray(PIXELS)),
        {"picture": content},
        {"picture": PIXELS, "boxes": [[0, 0, 1, 1]], "region_names": ["all"]},
    ]
    for form in forms:
        picture = as_picture(form, "query")
        assert np.array_equal(np.asarray(picture.load()), PIXELS), form
        assert picture.load().mode == "RGB"
    assert as_picture("photo.png", "query", photo.parent).key == "photo" and picture.boxes == [[0, 0, 1, 1]]


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
        (PIXELS[0], "the array of a picture must be (H, W, 3) of uint8, not (8, 3) of uint8"),
        (PIXELS / 255, "the array of a picture must be (H, W, 3) of uint8, not (6, 8, 3) of float64"),
        (PIXELS[:0, :5], "the picture has no pixels: it is 5 wide and 0 high"),
        (np.zeros((0, 0, 3), np.uint8), "the picture has no pixels: it is 0 wide and 0 high"),
        (Image.new("RGB", (0, 5)), "the picture has no pixels: it is 0 wide and 5 high"),
        (io.BytesIO(), "the picture's file has no more bytes; call seek(0) if the file was read before"),
        (io.StringIO("text"), "open the picture's file in binary mode: open(path, 'rb')"),
        ({"picture": "gone.jpg"}, "gone.jpg: no such file"),
        (
            {"picture": {"picture": PIXELS, "boxes": [[0, 0, 1, 1]]}},
            '"picture" holds another object; write one "picture" with "boxes" and "region_names"',
        ),
        ({"picture": PIXELS, "box": []}, 'unknown key "box" beside "picture"; use "boxes" and "region_names"'),
    ],
)
def test_a_picture_that_is_given_wrongly_is_a_line(value, message):
    with pytest.raises(ValueError) as error:
        as_picture(value, "q")
    assert str(error.value) == message


def test_a_file_cut_short_or_opened_for_writing_is_a_line(photo, tmp_path):
    (tmp_path / "cut.png").write_bytes(photo.read_bytes()[:120])
    with pytest.raises(ValueError, match="^the picture's file is cut short or damaged; get it again$"):
        as_picture(Image.open(tmp_path / "cut.png"), "q")
    with (tmp_path / "new.png").open("wb") as file, pytest.raises(ValueError) as error:
        as_picture(file, "q")
    assert str(error.value) == "the picture's file cannot be read; open(path, 'rb') for reading"


def test_bytes_that_are_no_image_name_the_query():
    with pytest.raises(DataError) as error:
        as_picture(b"not an image", "this query").load()
    assert str(error.value).startswith("this query: not a readable image: expected one of BMP, GIF, ")


@pytest.mark.parametrize("features", [[[float("nan")]], [[1e39]], [[1e38]], np.array([[np.inf]])])
def test_features_that_no_model_can_compute_with_are_refused(features):
    with pytest.raises(ValueError) as error:
        as_record({"features": features}, "q")
    assert str(error.value) == "features must be finite and between -1e+15 and 1e+15; extract them again"


def test_features_are_those_of_json_or_of_a_record():
    features = {"features": [[1, 2], [3, 4]], "boxes": [[0, 0, 1, 1], [0, 0, 0.5, 1.00005]], "region_names": ["a", "b"]}
    record = as_record(features, "q")
    assert record.features.dtype == np.float32 and record.boxes.max() == 1 and record.region_names == ("a", "b")
    again = as_record(Record("r", record.features, record.boxes), "q")
    assert again.key == "r" and np.array_equal(again.features, record.features) and as_record("key", "q") is None
