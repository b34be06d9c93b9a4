"""The recipe of the systems: a run, its resume, texts for a photo, its export, and the optimiser of the papers."""

from pathlib import Path

import pytest
import torch
from kit.recurrent import examples, model
from kit.toys import context, mmgen_here
from kit.training import largest_difference, sigterm_before
from mmgen_recurrent import Triplet
from PIL import Image

from mmgen.data.sources import Source
from mmgen.recipe.load import load
from mmgen.recipe.tables import Step, Training
from mmgen.registry import installed
from mmgen.training.optimizer import make_optimizer
from mmgen.training.train import train

ROOT = Path(__file__).resolve().parents[3]

SMALL = [
    "data.train_size=12",
    "data.val_size=4",
    "data.test_size=4",
    "training.epochs=1",
    "backbone.hidden_size=16",
    'inputs.image.extractor.model="test_resnet"',
    'inputs.place.extractor.model="test_resnet"',
    "inputs.image.extractor.image_size=64",
    "inputs.place.extractor.image_size=64",
    "metrics.overlap.meteor=false",
]
RUN = "runs/rivals/sample/seed-0"


def settings():
    return [argument for value in SMALL for argument in ("--set", value)]


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_run_writes_for_a_photo_and_is_exported(tmp_path):
    done = mmgen_here(tmp_path, "run", ROOT / "recipes/rivals.toml", *settings())
    assert done.returncode == 0, done.stderr
    table = (tmp_path / RUN / "table.md").read_text()
    assert all(f"| {step} " in table for step in ("max", "mdn_joint", "mc_sbn"))
    Image.new("RGB", (80, 60), "red").save(tmp_path / "photo.jpg")
    written = {}
    for place in (RUN, "exported"):
        for step in ("max", "mdn_joint", "mc_sbn"):
            caption = [] if step == "max" else ["--input", "caption=a red house"]
            where = (RUN, "--step", step) if place == RUN else (f"exported-{step}",)
            if place == "exported":
                done = mmgen_here(tmp_path, "export", RUN, where[0], "--step", step)
                assert done.returncode == 0, done.stderr
            done = mmgen_here(tmp_path, "generate", *where, "photo.jpg", *caption)
            assert done.returncode == 0 and done.stdout.strip(), done.stderr
            written.setdefault(step, []).append(done.stdout)
    assert all(first == again for first, again in written.values()), written
    options = ["--step", "max", "--name", "sample", "--set", "decoding.do_sample=true"]
    done = mmgen_here(tmp_path, "write", RUN, *options)
    assert done.returncode == 0 and "| max [sample] " in (tmp_path / RUN / "table.md").read_text(), done.stderr
    done = mmgen_here(tmp_path, "report", RUN)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_stopped_step_ends_with_the_same_bits(tmp_path):
    """MC-SBN with the triplet loss: ordinary and Monte Carlo dropout, exemplars, and the moments of RMSProp."""

    def trained(folder):
        rival = model("mc_sbn", objectives={"near": Triplet(contrasting=3)})
        settings = Training(batch_size=4, epochs=3, learning_rate=1e-2, precision="fp32", betas=(0.0, 0.8))
        step = Step(
            inputs=rival.inputs,
            train=("image", "place", "backbone"),
            objectives=("generator", "near"),
            training=settings,
        )
        folder.mkdir(exist_ok=True)
        train(rival, context(folder, step), [Source(examples(9), examples(3, seed=1))])
        return rival

    full = trained(tmp_path / "whole")
    with sigterm_before(4), pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped")
    resumed = trained(tmp_path / "stopped")
    assert largest_difference(resumed, full) == 0
    assert (tmp_path / "stopped/log.jsonl").read_text() == (tmp_path / "whole/log.jsonl").read_text()


def test_the_papers_optimiser_is_rmsprop():
    recipe, _ = load(ROOT / "recipes/rivals.toml", installed(), profile="paper")
    step, parameters = recipe.steps["max"], []
    for make in (
        lambda p: make_optimizer({"backbone.w": p}, step),
        lambda p: torch.optim.RMSprop([p], 4e-4, alpha=0.8),
    ):
        torch.manual_seed(0)
        parameter = torch.nn.Parameter(torch.randn(6, 5))
        optimizer = make(parameter)
        for _ in range(20):
            parameter.grad = torch.randn(6, 5)
            optimizer.step()
        parameters.append(parameter.detach())
    assert torch.allclose(*parameters, atol=1e-6)
    assert recipe.steps["mc_sbn"].training.learning_rate == 8e-4
