"""COCO's caption files, read and written."""

import json

import pytest
from mmgen_vl.coco import read_captions, save_captions

from mmgen.errors import DataError
from mmgen.reading.export import Exported, ExportedPicture
from mmgen.tensors import Example


def write(path, *rows):
    path.write_text(json.dumps({"annotations": rows}))
    return path


def row(image, caption, number=None):
    return {"image_id": image, "caption": caption} | ({} if number is None else {"id": number})


def test_duplicates_and_empty_captions_are_counted(tmp_path):
    first = write(tmp_path / "a.json", row(7, "a dog ", 1), row(7, "a dog", 1), row(8, " ", 2), row(7, "a red dog", 3))
    second = write(tmp_path / "b.json", row(7, "a dog", 1), row(9, "a cat"))
    captions, counts = read_captions([first, second])
    assert captions == {"7": ["a dog", "a red dog"], "9": ["a cat"]}
    assert counts == {"duplicate_captions": 2, "empty_captions": 1}


def test_a_caption_with_two_texts(tmp_path):
    first, second = write(tmp_path / "a.json", row(7, "a dog", 1)), write(tmp_path / "b.json", row(7, "a cat", 1))
    with pytest.raises(DataError) as error:
        read_captions([first, second])
    assert f"caption 1 of image 7 is 'a cat' here and 'a dog' in {first}; keep one of them" in str(error.value)


def test_what_is_written_is_read_back(tmp_path):
    examples = [
        Example("1", {"image": "7", "caption": ("a dog", "a red dog")}),
        Example("2", {"image": "7", "caption": "a dog"}),
        Example("3", {"image": "8"}),
    ]
    exported = Exported({}, {}, {"7": ExportedPicture("7.png", 4, 3, (), ())})
    assert save_captions(tmp_path / "c.json", examples, exported)
    assert read_captions([tmp_path / "c.json"]).of == {"7": ["a dog", "a red dog"]}
    assert not save_captions(tmp_path / "none.json", examples[2:], exported) and not (tmp_path / "none.json").exists()
