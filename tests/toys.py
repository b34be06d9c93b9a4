"""Small models and examples that tests share. Weights are random but not tiny, so that mistakes show."""

import random
from pathlib import Path

import torch
from accelerate import Accelerator
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_text import Text

from mmgen.model import Model, compose
from mmgen.progress import Progress
from mmgen.recipe.tables import Step
from mmgen.tensors import Example
from mmgen.training.context import StepContext

WORDS = "what color is the red ball dog near tree where how many are there big small under house".split()


def examples(count: int = 6, seed: int = 0, most_questions: int = 4) -> list[Example]:
    """Captions and questions of all lengths, several questions for most."""
    draw = random.Random(seed)

    def text(most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(1, most)))

    return [
        Example(
            f"e{i}", {"caption": (text(9), text(9))}, tuple(text(8) for _ in range(draw.randint(1, most_questions)))
        )
        for i in range(count)
    ]


def context(
    folder: Path, step: Step, progress: Progress | None = None, accelerator: Accelerator | None = None
) -> StepContext:
    """The step "s" of a run with seed 0; by default in one process on the CPU."""
    return StepContext("s", step, 0, folder, accelerator or Accelerator(cpu=True), progress or Progress())


def model(backbone=Bert, max_tokens: int = 9, seed: int = 0, **sizes) -> Model:
    """A caption-to-question model with random weights in eval mode."""
    sizes = {"layers": 2, "width": 32, "heads": 4, "vocabulary": 90, **sizes}
    torch.manual_seed(seed)
    composed = compose(
        backbone(**sizes), {"caption": Text()}, Masked(max_tokens=max_tokens), texts=[" ".join(WORDS)] * 3
    )
    with torch.no_grad():
        for parameter in composed.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return composed.eval()


RECIPE = """\
name = "toy"
[backbone]
type = "bert"
layers = 1
width = 32
heads = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[training]
batch_size = 16
epochs = 1
learning_rate = 1e-3
[steps.first]
inputs = ["caption"]
learn = ["backbone"]
[steps.second]
inputs = ["caption"]
learn = ["backbone"]
start = "first"
[data]
type = "scenes"
train_size = 24
val_size = 4
test_size = 6
[metrics.meaning]
type = "discovery"
"""

PICTURED = """\
name = "toy"
output = "{output}"
[backbone]
type = "bert"
layers = 2
width = 32
heads = 2
[inputs.image]
type = "regions"
[inputs.image.extractor]
type = "roi"
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[training]
batch_size = 16
epochs = {epochs}
learning_rate = {rate}
[steps.words]
inputs = ["caption"]
learn = ["backbone"]
[steps.both]
inputs = ["image", "caption"]
learn = ["image", "backbone"]
start = "words"
[data]
type = "scenes"
train_size = {train}
val_size = {val}
test_size = {test}
[metrics.meaning]
type = "discovery"
"""
