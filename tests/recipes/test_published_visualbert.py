"""VisualBERT's real set-up, run to its tables on synthetic files: names, folders, formats and feature widths of the
published archives, and a small encoder saved as on a hub."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from kit import published
from kit.archives import RECIPES, bert, captions
from kit.stores import fill, record
from safetensors.torch import load_file

from mmgen.cli import main

pytestmark = pytest.mark.slow

SCORED = {
    "vqa": "accuracy",
    "nlvr2": "consistency",
    "vcr_answers": "Q->A",
    "vcr_rationales": "QA->R",
    "flickr": "R@1",
}
PRETRAINED = {
    "vqa_pre": ["words"],
    "nlvr2_pre": ["words", "fits"],
    "vcr_pre": ["words", "fits"],
    "flickr_pre": ["words"],
}


def files(folder: Path) -> None:
    """The files that the recipe's comments and `mmgen data check` name. Image 20 of COCO is the minival."""
    published.vqa(folder / "vqa2")
    (folder / "vqa2/answers_vqa.txt").write_text("<unk>\nyes\n3\na dog\n")
    for year, images in (("train2014", [10, 11]), ("val2014", [20, 21])):
        captions(folder / "coco" / f"captions_{year}.json", images)
    (folder / "coco/minival.txt").write_text("20\n")
    published.nlvr2(folder / "nlvr2")
    published.vcr(folder / "vcr")
    published.flickr30k(folder / "flickr30k")
    coco = ["10", "11", "20", "21"]
    pairs = [f"{split}-850-{n}-img{side}" for split in ("train", "dev", "test1") for n in (0, 1) for side in (0, 1)]
    stills = [f"{split}_00.23@0" for split in ("train", "val")]
    for place, keys, width in (
        ("coco_detectron_fix_100", coco, 2048),
        ("mask_rcnn_r101/coco", coco, 1024),
        ("mask_rcnn_r101/nlvr2", pairs, 1024),
        ("vcr/coco", coco, 512),
        ("vcr/stills", stills, 512),
        ("bottom_up/coco", coco, 2048),
        ("bottom_up/flickr", ["1000", "2000", "3000"], 2048),
    ):
        store, _, part = place.partition("/")
        fill(
            folder / "visualbert" / store,
            [record(key, 4, width, seed) for seed, key in enumerate(keys)],
            prefix=part or "part",
        )


def test_every_step_of_the_paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files(Path("data"))
    shutil.copytree(RECIPES, "recipes")  # as `mmgen init` does: data/ lies beside them
    weights = bert(Path("encoder"), lower=True)
    sets = [f'backbone.weights="{weights}"', "training.batch_size=4"]
    text = Path("recipes/visualbert.toml").read_text()
    for epochs in ("50", "10", "12", "8", "5"):
        text = text.replace(f"epochs = {epochs}", "epochs = 1")
    Path("recipes/visualbert.toml").write_text(text)
    arguments = [
        "run",
        "recipes/visualbert.toml",
        "--profile",
        "paper",
        *(word for setting in sets for word in ("--set", setting)),
    ]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    steps = Path("runs/visualbert/paper/seed-0/steps")
    for step, metric in SCORED.items():
        assert 0 <= json.loads((steps / step / "scores.json").read_text())["values"][metric] <= 100, step
    for step, objectives in PRETRAINED.items():
        record = json.loads((steps / step / "log.jsonl").read_text().splitlines()[0])
        assert [name.partition(".")[0] for name in record.get("losses", {"words.loss": 0})] == objectives
    # in pretraining another head learns than in the task, which begins anew there
    before, pre, after = (
        load_file(steps / step / "weights.safetensors") for step in ("nlvr2_coco", "nlvr2_pre", "nlvr2")
    )
    for learnt, (first, second) in {"fits": (before, pre), "truth": (pre, after)}.items():
        name = f"objectives.{learnt}.head.weight"
        assert name in second and not torch.equal(second[name], first.get(name, torch.zeros(2, 16)))
    assert torch.equal(before["objectives.truth.head.weight"], pre["objectives.truth.head.weight"])
