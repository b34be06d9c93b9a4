"""Published questions, as they are published: VQG, OK-VQA and captions of COCO; the paper's rows."""

from pathlib import Path

import pytest
from mmgen_data import Vqa, Vqg

pytestmark = pytest.mark.slow

CAPTIONED = ("captions_from_categories.json",)


def test_vqg_coco(real_data):
    dataset = Vqg(folder=real_data / "vqg_coco", caption_files=CAPTIONED).build()
    description = dataset.describe()
    assert description["examples"] == {"train": 257, "val": 125, "test": 123}
    assert description["counts"]["train"] == {"examples without a caption": 2243}
    dataset = Vqg(folder=real_data / "vqg_coco", caption_files=()).build()
    first = dataset.split("train")[0]
    assert (first.id, first.inputs["image"]) == ("train-314392", "314392")
    assert first.targets[0] == "What is she drinking?" and len(first.targets) == 5
    ids = [example.id for split in dataset.splits() for example in dataset.split(split)]
    assert len(ids) == len(set(ids)) == 4998


def test_coco_captions_of_several(real_data):
    """Gzipped official captions: five per image, as alternatives."""
    folder, files = real_data / "vqg_coco", ("../coco/captions.json.gz",)
    examples = Vqg(folder=folder, caption_files=files).build().split("train")
    assert len(examples) == 102 and len(examples[0].inputs["caption"]) == 5


def test_okvqa(real_data, caplog):
    keys = {"release": "okvqa", "folder": real_data / "okvqa", "test_split": "val"}
    assert Vqa(**keys, caption_files=()).build().describe()["examples"] == {"train": 8998, "val": 5033}
    Vqa(**keys, train_split="val", caption_files=("captions_one_per_image.json.gz",)).build().split("val")
    assert caplog.messages == ["OK-VQA val: left out 1,268 examples without a caption"]


def test_the_papers_rows():
    for config, row, values in (
        (Vqa, "caption", (75.41, 26.51)),
        (Vqa, "Max", (59.4, 17.8)),
        (Vqg, "both", (70.96, 27.65)),
    ):
        rows = config(folder=Path("x")).released.rows
        assert (rows[row]["BLEU-1"], rows[row]["METEOR"]) == values
        steps = ["caption", "image_frozen", "image", "both", "both_scratch"]
        assert [label for label in rows if label.islower()] == steps
