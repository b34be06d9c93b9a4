"""Images: opened as they look and upright, refused if they are too large, found in folders; arrays of pixels."""

from io import BytesIO

import numpy as np
import pytest
from kit.refusals import refusal
from PIL import Image

from mmgen.features.images import as_rgb, folder_pictures, open_image

RAMP = (np.arange(256) * 257).astype(np.uint16).reshape(16, 16)  # of 16 bits: every grey of 8 bits
GREYS = np.arange(256).reshape(16, 16, 1).repeat(3, 2)


def saved(image, kind, **options) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def pixels(content: bytes) -> np.ndarray:
    """The pixels of a file, which must be those of Pillow's image of it too."""
    opened = np.asarray(open_image(BytesIO(content), "x"))
    assert np.array_equal(opened, np.asarray(as_rgb(Image.open(BytesIO(content)))))
    return opened


@pytest.mark.parametrize(
    "content",
    [
        saved(Image.fromarray(RAMP), "PNG"),
        saved(Image.fromarray(RAMP), "TIFF", compression="tiff_lzw"),
        saved(Image.fromarray(RAMP.astype(">u2")), "TIFF"),
        saved(Image.fromarray(GREYS[:, :, 0].astype(np.uint8)).convert("LA"), "PNG"),
    ],
    ids=["png", "lzw", "big", "opaque"],
)
def test_grey_of_16_bits_is_that_of_8(content):
    assert np.array_equal(pixels(content), GREYS)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_whose_range_is_not_known_are_refused(mode, tmp_path):
    Image.new(mode, (4, 4)).save(tmp_path / "a.tif")
    advice = "has pixels whose range is not known; scale the values to 0 to 255, and give 8 bits"
    assert refusal(open_image, tmp_path / "a.tif") == f"{tmp_path}/a.tif: {advice}"


def test_pictures_are_turned_the_right_way_up(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held sideways
    Image.new("RGB", (8, 6)).save(tmp_path / "a.jpg", exif=exif)
    assert open_image(tmp_path / "a.jpg").size == (6, 8)


def test_bombs_are_refused(tmp_path, monkeypatch):
    Image.new("RGB", (30, 40)).save(tmp_path / "a.png")
    for limit in (1000, 100):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        reason = "has more than the 89,478,485 pixels that are read; make it smaller"
        assert refusal(open_image, tmp_path / "a.png") == f"{tmp_path}/a.png: {reason}"


def test_folders_without_images_and_with_two_of_one_key(tmp_path):
    assert "no such folder; give a folder of images" in refusal(folder_pictures, tmp_path / "no")
    (tmp_path / "notes.txt").touch()
    assert refusal(folder_pictures, tmp_path / "notes.txt") == (
        f"{tmp_path}/notes.txt: is a file; give a folder of images"
    )
    assert "contains no images" in refusal(folder_pictures, tmp_path)
    for name in ("d.png", "c.jpg", "b/f.png", "b/e.png", "a/g.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [picture.key for picture in folder_pictures(tmp_path)] == ["c", "d", "g", "e", "f"]
    (tmp_path / "a" / "d.webp").touch()
    said = refusal(folder_pictures, tmp_path)
    assert said == f"{tmp_path}: d.png and a/d.webp have the same key 'd'; rename one of them"
