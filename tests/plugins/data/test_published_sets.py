"""Published questions: VQG, VQA, OK-VQA and captions of COCO."""

import json
import logging
from pathlib import Path

import pytest
from kit import published
from kit.questions import (
    HEADER,
    caption_file,
    load_error,
    vqa,
    vqa_file,
)
from mmgen_data import Vqa, Vqg
from PIL import Image

from mmgen.testing import DatasetSuite


def test_vqg_coco(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=("captions_from_categories.json",))
    dataset = config.build()
    description = dataset.describe()
    assert description["examples"] == {"train": 257, "val": 125, "test": 123}
    assert description["counts"]["train"] == {"examples without a caption": 2243}
    first = dataset.split("train")[0]
    everything = Vqg(folder=real_data / "vqg_coco", caption_files=()).build().split("train")
    assert len(everything) == 2500 and first.id in {example.id for example in everything}
    assert (everything[0].id, everything[0].inputs, everything[0].targets[0], len(everything[0].targets)) == (
        "train-314392",
        {"image": "314392"},
        "What is she drinking?",
        5,
    )
    json.dumps(description)


def test_vqg_coco_with_pictures(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=("captions_from_categories.json",), images="images")
    dataset = config.build()
    assert dataset.describe()["examples"] == {"train": 257, "val": 125, "test": 123}
    pictures = list(dataset.pictures())
    assert len(pictures) == len({picture.key for picture in pictures}) == 505
    assert pictures[0].key == dataset.split("train")[0].inputs["image"]
    assert pictures[0].load().mode == "RGB"


@pytest.mark.slow
def test_coco_captions_of_several(real_data):
    """Gzipped official captions: five per image, as alternatives."""
    folder, files = real_data / "vqg_coco", ("../coco/captions.json.gz",)
    examples = Vqg(folder=folder, caption_files=files).build().split("train")
    assert len(examples) == 102 and len(examples[0].inputs["caption"]) == 5


def test_okvqa(real_data, caplog):
    config = Vqa(release="okvqa", folder=real_data / "okvqa", test_split="val", caption_files=())
    description = config.build().describe()
    assert description["examples"] == {"train": 8998, "val": 5033}
    captioned = config.model_copy(
        update={"train_split": "val", "caption_files": (Path("captions_one_per_image.json.gz"),)}
    )
    with caplog.at_level(logging.INFO, "mmgen"):
        description = captioned.build().describe()
    assert caplog.messages == ["OK-VQA val: left out 1,268 examples without a caption"]


def test_every_split_is_the_same_twice_and_ids_are_unique(real_data):
    config = Vqg(folder=real_data / "vqg_coco", caption_files=())
    first, second = config.build(), config.build()
    ids = [example.id for split in first.splits() for example in first.split(split)]
    assert len(ids) == len(set(ids)) == 4998
    assert all(first.split(split) == second.split(split) for split in first.splits())


@pytest.mark.parametrize("release, prefix", [("1.0", "OpenEnded"), ("1.0", "MultipleChoice"), ("2.0", "v2_OpenEnded")])
def test_vqa_under_its_published_names(tmp_path, release, prefix):
    (tmp_path / "annotations").mkdir()
    for image, (split, year) in enumerate({"train": "train2014", "val": "val2014", "test": "test2015"}.items()):
        vqa_file(tmp_path / f"{prefix}_mscoco_{year}_questions.json", (image, "What is it?"), (image, "Who is it?"))
        caption_file(tmp_path / "annotations" / f"captions_{year}.json", (image, image, f"a thing of {split}"))
    dataset = Vqa(folder=tmp_path, release=release).build()
    assert dataset.splits() == ("train", "val", "test")
    assert dataset.split("val")[0].inputs == {"image": "1", "caption": ("a thing of val",)}
    assert dataset.split("test")[0].targets == ("What is it?", "Who is it?")
    published = dataset.describe().get("published", {})
    assert bool(published) == (release == "1.0")


def test_a_captioners_bare_results(tmp_path):
    vqa_file(tmp_path / "q.json", (9, "What?"))
    (tmp_path / "c.json").write_text(json.dumps([{"image_id": "COCO_val2014_000000000009.jpg", "caption": "a  cat\n"}]))
    assert vqa(tmp_path, caption_files=("c.json",)).build().split("train")[0].inputs == {
        "image": "9",
        "caption": ("a cat",),
    }


def test_captions_in_bings_tables(tmp_path):
    """Bing's and Flickr's files have their images' captions in a column."""
    (tmp_path / "q.csv").write_text(
        "image_id,image_url,questions,captions\n7,u,What?---Who?,a cat---a pet\n8,u,Why?,\n"
    )
    files = {"train": "q.csv"}
    dataset = Vqg(release="bing", folder=tmp_path, files=files, validation_split="", test_split="train").build()
    (example,) = dataset.split("train")
    assert example.inputs == {"image": "7", "caption": ("a cat", "a pet")}


def test_vqg_under_its_published_names(tmp_path):
    dataset = Vqg(folder=published.vqg(tmp_path), images="images").build()
    (train,), (val,), (test,) = (dataset.split(split) for split in dataset.splits())
    assert (train.id, train.targets) == ("train-9", ("Is it old, or new?", "Who is it?"))
    assert train.inputs == {"image": "9", "caption": ("A dog .", "a brown dog")}
    assert (val.id, val.inputs) == ("val-10", {"image": "10", "caption": ("two cats",)})
    assert (test.id, test.inputs) == ("test-11", {"image": "11", "caption": ("a boat",)})
    assert [picture.key for picture in dataset.pictures()] == ["9", "10", "11"]


class TestVqa(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            vqa_file(tmp_path / f"{split}.json", (image, "What?"), (image, "Who?"), (image + 5, "Why?"))
            Image.new("L", (8, 6)).save(tmp_path / f"{image:012}.jpg")
        caption_file(tmp_path / "c.json", *((number, number, f"thing {number}") for number in range(8)))
        self.folder = tmp_path

    def config(self):
        files = {split: f"{split}.json" for split in ("train", "val", "test")}
        return Vqa(folder=self.folder, files=files, caption_files=("c.json",), images=".")


class TestVqg(DatasetSuite):
    @pytest.fixture(autouse=True)
    def files(self, tmp_path):
        for image, split in enumerate(("train", "val", "test")):
            (tmp_path / f"bing_{split}_all.csv").write_text(f"{HEADER}\n{image},u,What?---Who?\n")
        self.folder = tmp_path

    def config(self):
        return Vqg(release="bing", folder=self.folder)


def annotated(folder: Path, **options) -> Vqa:
    vqa_file(folder / "q.json", ("1", "what is it?"), ("1", "is it red?"), ("2", "how many?"))
    answers = [("a dog", "other", "what is the"), ("yes", "yes/no", "is it"), ("2", "number", "how many")]
    keys = ("multiple_choice_answer", "answer_type", "question_type")
    items = [
        {"question_id": number, "answers": [{"answer": row[0]}], **dict(zip(keys, row, strict=True))}
        for number, row in enumerate(answers)
    ]
    (folder / "mscoco_train2014_annotations.json").write_text(json.dumps({"annotations": items}))
    return vqa(folder, **options)


@pytest.mark.parametrize(
    ("kind", "prompts"),
    [
        ("answer", [("answer: a dog", "answer: yes"), ("answer: 2",)]),
        ("answer_type", [("answer type: other", "answer type: yes/no"), ("answer type: number",)]),
        ("question_type", [("question type: what is the", "question type: is it"), ("question type: how many",)]),
    ],
)
def test_prompts_from_the_annotations_of_vqa(tmp_path, kind, prompts):
    config = annotated(tmp_path, prompts=kind)
    assert config.labels == ("prompt",) and annotated(tmp_path).labels == ()
    assert [example.labels["prompt"] for example in config.build().split("train")] == prompts
    assert all(not example.labels for example in annotated(tmp_path).build().split("train"))


def test_prompts_need_annotations(tmp_path):
    config = annotated(tmp_path, prompts="answer").model_copy(
        update={"files": {"train": Path("q.json"), "test": Path("q.json")}, "test_split": "test"}
    )
    message = "no annotations of 'test'; choose another split, such as test_split = \"val\""
    assert message in str(load_error(config))
    with pytest.raises(ValueError, match='prompts: only questions have prompts; remove it, or set targets = "questi'):
        annotated(tmp_path, prompts="answer", targets="captions")


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
