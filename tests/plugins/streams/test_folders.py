"""Pictures below a URL, listed as they are read."""

import pytest
from mmgen_streams import folders
from PIL import Image

from mmgen.errors import DataError


@pytest.fixture
def url(tmp_path):
    (tmp_path / "photos" / "more").mkdir(parents=True)
    for name in ("b.png", "more/a.jpg"):
        Image.new("RGB", (4, 3), (250, 0, 0)).save(tmp_path / "photos" / name)
    (tmp_path / "photos" / "notes.txt").write_text("no picture")
    return f"file://{tmp_path / 'photos'}"


def test_pictures_of_all_folders_in_order(url):
    first, second = folders.pictures(url)
    assert (first.key, second.key) == ("b", "a") and first.load().size == (4, 3)


def test_a_folder_without_pictures(tmp_path):
    with pytest.raises(DataError, match=f"file://{tmp_path}: contains no images"):
        list(folders.pictures(f"file://{tmp_path}"))


def test_a_file_that_is_too_large_is_not_read(url, monkeypatch):
    monkeypatch.setattr(folders, "MOST_BYTES", 10)
    with pytest.raises(DataError, match=r"b\.png: has more than 10 bytes"):
        next(folders.pictures(url)).load()
