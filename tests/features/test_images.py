"""Image files: opened upright, refused if they are too large, found in folders."""

from io import BytesIO

import pytest
from PIL import Image

from mmgen.errors import DataError
from mmgen.features.images import MANY_PIXELS, image_size, open_image
from mmgen.features.picture_sources import folder_pictures


def test_pictures_are_turned_the_right_way_up(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held sideways
    Image.new("RGB", (8, 6)).save(tmp_path / "a.jpg", exif=exif)
    assert open_image(tmp_path / "a.jpg").size == (6, 8)


def test_bombs_are_refused(tmp_path, monkeypatch):
    Image.new("RGB", (30, 40)).save(tmp_path / "a.png")
    for limit in (1000, 100):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        with pytest.raises(DataError, match="a.png: not a readable image: Image size .1200 pixels. exceeds limit"):
            open_image(tmp_path / "a.png")


def test_photos_of_formats_that_are_not_read_are_reported(tmp_path, caplog):
    for name in ("b/two.heic", "a.png", "one.AVIF", "b/c.jpg", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [picture.key for picture in folder_pictures(tmp_path)] == ["a", "c"]
    (tmp_path / "one.AVIF").unlink()
    folder_pictures(tmp_path)
    assert caplog.messages == [
        f"{tmp_path}: skipped 2 photos, such as one.AVIF: .avif and .heic files are not supported; convert them "
        "to JPEG or PNG",
        f"{tmp_path}: skipped b/two.heic: .heic files are not supported; convert them to JPEG or PNG",
    ]


@pytest.mark.slow
def test_the_size_of_a_picture_by_its_header():
    file = BytesIO()
    Image.new("1", (31_000, 30_000)).save(file, "PNG")
    assert image_size(BytesIO(file.getvalue())) == MANY_PIXELS  # more than the library opens
    small = BytesIO()
    Image.new("RGB", (7, 5)).save(small, "PNG")
    assert image_size(BytesIO(small.getvalue())) == (7, 5)
    assert image_size(BytesIO(b"no picture")) is None
