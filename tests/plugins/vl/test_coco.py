"""COCO's caption files."""

import json

import pytest
from mmgen_vl.coco import read_captions

from mmgen.errors import DataError


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
