"""Pictures and features in all accepted forms of a query."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mmgen.errors import DataError
from mmgen.inference.query_pictures import as_file, as_picture, as_record
from mmgen.parts import File, Picture, Record

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
    for value in (photo, photo.read_bytes(), photo.open("rb"), File("x", photo)):
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
        (
            torch.zeros(3, 6, 8),
            "a Tensor of shape (3, 6, 8) is no picture; give a numpy array, channels last",
        ),
        (Image.new("I", (2, 2)), f"the picture has pixels {RANGE}"),
        (Image.new("F", (2, 2)), f"the picture has pixels {RANGE}"),
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
