"""Where pictures come from: folders, listed as they are read, and the pictures of a shard."""

import pytest
from PIL import Image

from mmgen.errors import DataError
from mmgen.features import images, picture_sources
from mmgen.features.picture_sources import folder_pictures
from mmgen.features.shards import Shard


def test_folders_without_images_and_with_two_of_one_key(tmp_path):
    with pytest.raises(DataError, match="no such folder; give a folder of images"):
        folder_pictures(tmp_path / "no")
    (tmp_path / "notes.txt").touch()
    with pytest.raises(DataError) as error:
        folder_pictures(tmp_path / "notes.txt")
    assert str(error.value) == f"{tmp_path}/notes.txt: is a file; give a folder of images"
    with pytest.raises(DataError, match="contains no images"):
        folder_pictures(tmp_path)
    for name in ("a.png", "a.jpg"):
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    with pytest.raises(DataError) as error:
        folder_pictures(tmp_path)
    assert str(error.value) == f"{tmp_path}: a.jpg and a.png have the same key 'a'; rename one of them"


def test_a_large_folder_is_listed_as_it_is_read(tmp_path, monkeypatch):
    for name in ("d.png", "c.jpg", "b/f.png", "b/e.png", "a/g.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    listed = [picture.key for picture in folder_pictures(tmp_path)]
    assert listed == ["c", "d", "g", "e", "f"]
    for module in (picture_sources, images):
        monkeypatch.setattr(module, "LISTED", 2)
    pictures = folder_pictures(tmp_path)
    assert not isinstance(pictures, list)
    keys = [picture.key for picture in pictures]
    assert keys == [picture.key for picture in pictures] and sorted(keys) == sorted(listed)
    parts = [[picture.key for picture in folder_pictures(tmp_path, Shard(number, 2))] for number in (1, 2)]
    assert sorted(sum(parts, [])) == sorted(listed) and all(parts)
    (tmp_path / "a" / "d.webp").touch()
    with pytest.raises(DataError, match="d.png and a/d.webp have the same key 'd'; rename one of them"):
        list(folder_pictures(tmp_path, None))
