"""Question files as published: joined and counted; damaged files give clear errors."""

import gzip

import pytest
from kit.questions import (
    caption_file,
    load_error,
    vqa,
    vqa_file,
)
from mmgen_data import Vqa
from PIL import Image
from pydantic import ValidationError

from mmgen.errors import DataError


def test_all_missing_files_are_listed_at_once(tmp_path):
    with pytest.raises(DataError) as caught:
        Vqa(folder=tmp_path).build()
    lines = str(caught.value).splitlines()
    assert lines[0] == "VQA 1.0: 6 files are missing:"
    assert lines[1] == f"  {tmp_path}/OpenEnded_mscoco_train2014_questions.json  <- visualqa.org/vqa_v1_download.html"
    assert lines[6].startswith(f"  {tmp_path}/captions_test2015.json  <- never published")
    assert lines[7].startswith("  put the files there, or name others in [data]")


def test_unused_splits_need_no_files(tmp_path):
    with pytest.raises(DataError, match="2 files are missing"):
        Vqa(folder=tmp_path, train_split="val", test_split="val").build()


def test_an_unknown_split(tmp_path):
    with pytest.raises(ValidationError, match="test_split: OK-VQA has no split 'test'; choose from: train, val"):
        Vqa(folder=tmp_path, release="okvqa")
    vqa_file(tmp_path / "q.json", (1, "What?"))
    with pytest.raises(DataError, match="VQA 1.0: split 'dev' is not in use; the splits are: train"):
        vqa(tmp_path).build().split("dev")


def test_a_missing_folder_of_pictures(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"))
    text = load_error(vqa(tmp_path, images="photos"))
    assert text == (
        "VQA 1.0: a file is missing:\n"
        f"  {tmp_path}/photos (a folder)  <- data.images names the folder of raw images\n"
        "  put the files there, or name others in [data] (`mmgen plugins vqa` has the keys); "
        f"`mmgen data get vqa1 {tmp_path}` fetches what is published"
    )


def test_a_gzipped_file_that_is_cut_short(tmp_path):
    vqa_file(tmp_path / "q.json", *((n, "What is it?") for n in range(500)))
    packed = gzip.compress((tmp_path / "q.json").read_bytes())
    (tmp_path / "q.json").unlink()
    (tmp_path / "q.json.gz").write_bytes(packed)
    assert len(vqa(tmp_path).build().split("train")) == 500
    (tmp_path / "q.json.gz").write_bytes(packed[:-100])
    text = load_error(vqa(tmp_path))
    assert text.startswith(f"{tmp_path / 'q.json.gz'}: cannot be unpacked (") and text.endswith(
        "; the file may be cut short: get it again"
    )


def test_images_without_a_caption(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"), (2, "Who?"))
    caption_file(tmp_path / "c.json", (5, 1, "a cat"))
    data = vqa(tmp_path, caption_files=("c.json",)).build()
    assert [example.id for example in data.split("train")] == ["train-1"]
    assert data.describe()["counts"]["train"] == {"examples without a caption": 1}
    caption_file(tmp_path / "c.json", (5, 3, "a cat"))
    text = load_error(vqa(tmp_path, caption_files=("c.json",)))
    assert text == f"{tmp_path}/q.json: no examples remain for the split 'train': 2 examples without a caption"


def test_pictures(tmp_path):
    vqa_file(tmp_path / "q.json", (1, "What?"), (2, "Who?"))
    with pytest.raises(DataError, match="VQA 1.0 has no raw images; set data.images"):
        list(vqa(tmp_path).build().pictures())
    (tmp_path / "images" / "train2014").mkdir(parents=True)
    Image.new("L", (8, 6)).save(tmp_path / "images" / "train2014" / "COCO_train2014_000000000001.jpg")
    dataset = vqa(tmp_path, images="images").build()
    (picture,) = dataset.pictures()
    assert (picture.key, picture.load().size, picture.load().mode) == ("1", (8, 6), "RGB")
    assert dataset.describe()["counts"]["train"]["examples without a picture"] == 1
    broken = tmp_path / "images" / "000000000002.jpg"
    broken.write_bytes(b"no image")
    _, picture = vqa(tmp_path, images="images").build().pictures()
    with pytest.raises(DataError, match="000000000002.jpg: not a readable image"):
        picture.load()
    broken.rename(tmp_path / "images" / "1.png")
    assert (
        load_error(vqa(tmp_path, images="images"))
        == f"{tmp_path}/images: 1.png and train2014/COCO_train2014_000000000001.jpg have the same key '1'; rename one "
        "of them"
    )
