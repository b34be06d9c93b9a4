"""Small models and examples that tests share. Weights are random but not tiny, so that mistakes show."""

import contextlib
import json
import random
import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from mmgen_encoders import AnyEncoder, Bert, Roberta
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from pydantic import Field
from safetensors.torch import load_file

from kit import stores
from kit.weights import built_once, perturbed
from mmgen.examples import Example
from mmgen.model import Model, compose
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.recipe.tables import Recipe, Step
from mmgen.registry import installed
from mmgen.training.context import StepContext
from mmgen.training.distributed import Processes

PLACE = Path("runs/toy/default/seed-0")  # of the toy recipe's run, in the folder that it was started from
ROI = {"type": "roi", "model": "test_resnet", "image_size": 64}  # a network of few weights, quickly built
WORDS = "what color is the red ball dog near tree where how many are there big small under house".split()
TEXTS = [" ".join(WORDS)] * 3
SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 90}


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
    folder: Path, step: Step, progress: Progress | None = None, accelerator: Processes | None = None
) -> StepContext:
    """The step "s" of a run with seed 0; by default in one process on the CPU."""
    return StepContext("s", step, 0, folder, accelerator or Processes(cpu=True), progress or Progress())


@built_once
def model(backbone=Bert, max_tokens: int = 9, seed: int = 0, **sizes) -> Model:
    """A caption-to-question model with random weights in eval mode."""
    torch.manual_seed(seed)
    generator = Masked(max_tokens=max_tokens)
    return perturbed(compose(backbone(**{**SIZES, **sizes}), {"caption": Text()}, generator, texts=TEXTS))


def pictured(count: int = 6, **sizes) -> tuple[Model, list[Example]]:
    """A model of regions and captions, and examples of 1 to 5 regions."""
    inputs = {"image": Regions(width=8, fingerprint={"made": "up"}, normalize="standard"), "caption": Text()}
    torch.manual_seed(0)
    composed = compose(Bert(**{**SIZES, **sizes}), inputs, Masked(max_tokens=9), texts=TEXTS)
    records = [stores.record(f"e{number}", 1 + number % 5, 8, number) for number in range(count)]
    pairs = zip(examples(count), records, strict=True)
    return composed, [replace(example, inputs={**example.inputs, "image": record}) for example, record in pairs]


class Albert(AnyEncoder):
    """Its layers share their weights; its word embeddings are narrower than its states."""

    supports_gradient_checkpointing = False

    family: str = Field("albert", description="as of `encoder`")


class Electra(AnyEncoder):
    """Its head has a transform of its own."""

    family: str = Field("electra", description="as of `encoder`")


class DistilBert(AnyEncoder):
    """Without token types."""

    family: str = Field("distilbert", description="as of `encoder`")


FAMILIES = (Bert, Roberta, Albert, Electra, DistilBert)  # the modules of others are those of one of them


def families() -> list:
    """Every encoder with modules of its own as a parameter: BERT for every commit, the rest for the full suite."""
    return [
        pytest.param(family, marks=pytest.mark.slow if family != Bert else (), id=family.__name__)
        for family in FAMILIES
    ]


RECIPE = """\
name = "toy"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 32
num_attention_heads = 2
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
train = ["backbone"]
[steps.second]
inputs = ["caption"]
train = ["backbone"]
start = "first"
[data]
type = "scenes"
train_size = 24
val_size = 4
test_size = 6
[metrics.meaning]
type = "discovery"
"""


def recipe(**changes) -> str:
    """The toy recipe as TOML, with other values. Tables are merged with the toy's, but inputs, steps and metrics are
    replaced; None removes a table, or a key of a merged one."""
    return toml(_without_none(_merge(tomllib.loads(RECIPE), changes)))


def three_steps(**changes) -> str:
    """The toy recipe with pictures: a step of captions, one of both that starts from it, and one of pictures alone."""
    return recipe(
        inputs={"image": {"type": "regions", "extractor": ROI}, "caption": {"type": "text"}},
        steps={
            "first": {"inputs": ["caption"], "train": ["backbone"]},
            "second": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "first"},
            "apart": {"inputs": ["image"], "train": ["image", "backbone"], "evaluate": False},
        },
        data={"train_size": 16, "val_size": 2, "test_size": 3, "image_size": 64},
        **changes,
    )


def vlbert(**changes) -> str:
    """The toy recipe of VL-BERT, on drawn scenes: masked regions of captions' pictures, seen by drawn weights; with
    other values as in `recipe`."""
    drawn = {**ROI, "weights": "random"}
    tables = {
        "backbone": {"type": "vlbert"},
        "inputs": {"caption": {"type": "text"}, "image": {"type": "vlbert_regions", "extractor": drawn}},
        "objectives": {"regions": {"type": "masked_regions"}},
        "data": {"image_size": 64},
        "metrics": {},
    }
    return recipe(**_merge(tables, changes))


def _merge(tables: dict, changes: dict) -> dict:
    for name, change in changes.items():
        laid_over = isinstance(change, dict) and name not in ("inputs", "steps", "metrics")
        tables[name] = {**tables.get(name, {}), **change} if laid_over else change
    return tables


def _without_none(table: dict) -> dict:
    return {
        name: _without_none(value) if isinstance(value, dict) else value
        for name, value in table.items()
        if value is not None
    }


def toml(table: dict, path: str = "") -> str:
    """Nested tables of numbers, texts and lists as TOML; lists of tables too."""
    values = "".join(f"{_key(key)} = {_value(value)}\n" for key, value in table.items() if not isinstance(value, dict))
    below = "".join(toml(value, f"{path}{key}.") for key, value in table.items() if isinstance(value, dict))
    return (f"[{path.rstrip('.')}]\n{values}" if path and (values or not below) else values) + below


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def _value(value) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    has_tables = isinstance(value, list) and any(isinstance(item, dict) for item in value)
    return "[\n" + "".join(f"  {_value(item)},\n" for item in value) + "]" if has_tables else json.dumps(value)


def recipe_with_pictures(output: Path, epochs: int, rate: float, train: int, val: int, test: int) -> str:
    """A recipe with pictures: one step reads captions, the next one pictures too."""
    return recipe(
        output=str(output),
        backbone={"num_hidden_layers": 2},
        inputs={"image": {"type": "regions", "extractor": ROI}, "caption": {"type": "text"}},
        training={"epochs": epochs, "learning_rate": rate},
        steps={
            "words": {"inputs": ["caption"], "train": ["backbone"]},
            "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "start": "words"},
        },
        data={"train_size": train, "val_size": val, "test_size": test},
    )


def weights(folder: Path, step: str) -> dict[str, torch.Tensor]:
    """The trained weights of a step of the toy recipe, in the folder its run was started from."""
    return load_file(folder / PLACE / "steps" / step / "weights.safetensors")


def loaded(folder: Path, text: str) -> Recipe:
    """The recipe of a text, which becomes toy.toml in the folder."""
    (folder / "toy.toml").write_text(text)
    return load(folder / "toy.toml", installed())[0]


def mmgen_here(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """A command in this process, since starting one takes seconds."""
    from click.testing import CliRunner

    from mmgen.cli import main
    from mmgen.registry import forgotten_files

    with contextlib.chdir(folder), forgotten_files():
        done = CliRunner().invoke(main, list(map(str, arguments)), prog_name="mmgen")
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def ran(folder: Path, *arguments: str) -> str:
    """What `mmgen run toy.toml` prints, which must end well."""
    done = mmgen_here(folder, "run", "toy.toml", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout
