"""Pictures, files, keys and features in all accepted forms of a query; those of a batch are extracted together."""

import base64
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from kit import stored
from kit.refusals import refusal
from PIL import Image

from mmgen.errors import DataError, UnavailableError
from mmgen.inference.query import Query
from mmgen.inference.query_pictures import QueryFeatures, as_file, as_picture
from mmgen.parts import Extractor, FailedImage, File, Picture, Record

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


def test_strings_of_a_stranger_are_neither_addresses_nor_files(photo):
    for value in (str(photo), "photo.png", f"file://{photo}", "/etc/passwd"):
        for read in (as_picture, as_file):
            assert refusal(read, value, "q", None).endswith("; addresses are never fetched")
    sent = base64.b64encode(photo.read_bytes()).decode()
    assert np.array_equal(as_picture(sent, "q", None).load(), PIXELS)
    assert as_file(f"data:image/png;base64,{sent}", "q", None).open().read() == photo.read_bytes()
    assert as_file("photo.png", "q", photo.parent) == File(str(photo), photo) and as_file("photo", "q") is None
    for value in (photo, photo.read_bytes(), File("x", photo)):
        assert as_file(value, "q", None if not isinstance(value, Path) else Path()).open().read() == photo.read_bytes()


ROWS = "write boxes as a list of [x0, y0, x1, y1], relative to the picture's size, such as [[0, 0, 0.5, 1]]"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (PIXELS / 255, "an array of pixels must be of uint8, not float64; scale its values to 0 to 255"),
        (Image.new("F", (2, 2)), "has pixels whose range is not known; "),
        ({"picture": "gone.jpg"}, "{'picture': 'gone.jpg'}: expected {\"picture\": PICTURE, \"boxes\": [...]}"),
        *(
            ({"picture": PIXELS, "boxes": boxes}, f"got boxes {boxes!r}; {ROWS}")
            for boxes in (
                [[0.6, 0, 0.5, 1]],
                [[0, 0, 640, 480]],
                [0, 0, 1, 1],
            )
        ),
    ],
)
def test_a_picture_that_is_given_wrongly_is_a_line(value, message):
    with pytest.raises(ValueError) as error:
        as_picture(value, "q")
    assert str(error.value).startswith(message)


QUERY = Query("q", {})


@pytest.fixture
def features(tmp_path):
    embedder = stored.embedder(features=stored.fill(tmp_path / "f.h5"))
    model = SimpleNamespace(embedders={"image": embedder})
    config = SimpleNamespace(takes="picture")  # no extractor is known
    return QueryFeatures(model, {"image": config}, "run", None)


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


def test_the_pictures_of_a_batch_are_extracted_together(features):
    """Whatever their keys are, and whatever fails."""
    extractor = features._extractors["image"] = Means()
    pictures = [features.part("image", QUERY, picture(level)) for level in (10, 20, 255, 40)]
    first, second, white, last = features.records("image", pictures)
    assert [len(batch) for batch in extractor.batches] == [4]
    assert [record.features[0, 0] for record in (first, second, last)] == [10, 20, 40] and last.key == "q"
    assert isinstance(white, DataError) and str(white).endswith("is white")


def test_a_picture_that_stops_the_extraction_stops_no_other(features):
    extractor = features._extractors["image"] = Means()
    pictures = [features.part("image", QUERY, image) for image in (picture(1, size=1), picture(10))]
    small, good = features.records("image", pictures)
    assert str(small) == "a picture is too small" and good.features[0, 0] == 10
    assert [len(batch) for batch in extractor.batches] == [2, 1, 1]


def test_what_is_neither_a_picture_nor_a_key(features):
    error = features.part("image", QUERY, 7)
    assert isinstance(error, DataError) and str(error) == "image: expected a picture, but got 7"
    assert str(features.part("image", Query("q", folder=None), "3")).endswith("addresses are never fetched")


def test_a_picture_needs_the_extractor_of_the_training(features):
    with pytest.raises(UnavailableError, match="^run: 'image' was trained on features of roi resnet18, whose"):
        features.records("image", [Picture("q", None)])
