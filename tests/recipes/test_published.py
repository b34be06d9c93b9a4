"""The recipes' real set-ups, run to their table on synthetic files: names, folders and formats of the published
archives, and a small encoder saved as on a hub."""

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from kit.archives import IMAGES, RECIPES, TEXTS, bert, captions, image_files, modernbert, modernvbert, regions, roberta
from mmgen_encoders import Bert

from mmgen.cli import main

pytestmark = pytest.mark.slow  # every test starts commands or processes

ROWS = ["caption", "image_frozen", "image", "both", "both_scratch"]


def vqa1(folder: Path) -> None:
    """VQA 1.0 as visualqa.org and COCO give it; the test captions are a captioner's results."""
    for number, (split, captioned) in enumerate(
        {"train2014": "train2014", "val2014": "val2014", "test2015": "test2015"}.items()
    ):
        images = [100 * number + image for image in IMAGES]
        questions = [
            {"image_id": image, "question": TEXTS[n], "question_id": 10 * image + n}
            for image in images
            for n in range(2)
        ]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"OpenEnded_mscoco_{split}_questions.json").write_text(
            json.dumps({"questions": questions, "license": {"name": "CC BY 4.0"}})
        )
        captions(folder / "annotations" / f"captions_{captioned}.json", images)
    every = [100 * number + image for number in range(3) for image in IMAGES]
    regions(folder / "regions", every)
    regions(folder / "grid", every)
    image_files(folder / "images", every)


def vqg(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number, split in enumerate(("train", "val", "test")):
        rows = "".join(f"{100 * number + image},http://x/{image}.jpg,{TEXTS[0]}---{TEXTS[1]}\n" for image in IMAGES)
        (folder / f"coco_{split}_all.csv").write_text("image_id,image_url,questions\n" + rows)
    every = [100 * number + image for number in range(3) for image in IMAGES]
    captions(folder / "captions_train2014.json", every)
    regions(folder / "regions", every)


def okvqa(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    questions = [{"image_id": image, "question": TEXTS[0], "question_id": image} for image in IMAGES]
    (folder / "OpenEnded_mscoco_val2014_questions.json").write_text(json.dumps({"questions": questions}))
    captions(folder / "captions_val2014.json", IMAGES)


def coco(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"id": str(i), "caption": TEXTS[0], "questions": [TEXTS[0]]}) for i in IMAGES]
    (folder / "train.jsonl").write_text("\n".join(lines))


@pytest.mark.parametrize(
    ("recipe", "profile", "save"),
    [
        ("bertgen_vqa", "paper", bert),
        pytest.param("bertgen_vqa", "roberta_paper", roberta, marks=pytest.mark.exhaustive),  # the same but for RoBERTa
        pytest.param("bertgen_vqa", "modernbert_paper", modernbert, marks=pytest.mark.exhaustive),  # has its modules:
        ("bertgen_vqa_modernvbert", "paper", modernvbert),
        pytest.param("bertgen_vqa", "grid_paper", bert, marks=pytest.mark.exhaustive),  # another file of features
        pytest.param("bertgen_vqg_coco", "paper", bert, marks=pytest.mark.exhaustive),  # the warm one reads these files
        pytest.param("bertgen_vqg_coco", "small", bert, marks=pytest.mark.exhaustive),  # and extends this profile
        ("bertgen_vqg_coco", "warm", bert),
        pytest.param("bertgen_vqg_coco", "words", bert, marks=pytest.mark.exhaustive),  # captions of others first
    ],
)
def test_the_five_rows(recipe, profile, save, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (vqg if "vqg" in recipe else vqa1)(Path("data/vqg_coco" if "vqg" in recipe else "data/vqa1"))
    okvqa(Path("data/okvqa"))
    coco(Path("data/coco"))
    shutil.copytree(RECIPES, "recipes")  # as `mmgen init` does: data/ lies beside them
    weights = save(Path("encoder"))
    sets = [
        f'backbone.weights="{weights}"',
        "training.epochs=1",
        "training.batch_size=4",
        "metrics.overlap.meteor=false",
        *(["steps.seeing.training.epochs=1", "steps.both_scratch.training.epochs=1"] if profile == "warm" else []),
    ]
    arguments = [
        "run",
        f"recipes/{recipe}.toml",
        "--profile",
        profile,
        *(word for setting in sets for word in ("--set", setting)),
    ]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    folder = Path("runs") / recipe / profile / "seed-0"
    rows = [
        line.split("|")[1].strip() for line in (folder / "table.md").read_text().splitlines() if line.startswith("| ")
    ]
    assert [row for row in rows if row in ROWS] == ROWS and "caption (published)" in rows
    assert (folder / "report.html").exists()
    for row in ROWS:
        assert len((folder / f"steps/{row}/generations.jsonl").read_text().splitlines()) == len(IMAGES)


def test_a_cased_encoder_reads_and_writes_capitals_and_an_uncased_one_does_not(tmp_path):
    cased, uncased = (
        Bert(weights=str(bert(tmp_path / name, lower))).build() for name, lower in (("cased", False), ("uncased", True))
    )
    texts = "What is the Dog doing?", "what is the dog doing?"
    assert cased.encode_text(texts[0]) != cased.encode_text(texts[1])
    assert uncased.encode_text(texts[0]) == uncased.encode_text(texts[1])
    assert cased.tokenizer.decode(cased.encode_text("A Dog")) == "A Dog"
