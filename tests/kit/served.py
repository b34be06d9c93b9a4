"""A small model with random weights that reads pictures and captions, and its service in this process."""

import base64
from contextlib import contextmanager
from io import BytesIO

import torch
from mmgen_inputs import Regions
from PIL import Image

from kit import asked, toys
from mmgen.inference.predictor import Predictor
from mmgen.model import Objectives, compose
from mmgen.parts import Picture
from mmgen.recipe.load import load
from mmgen.registry import installed

ROI = {**toys.ROI, "weights": "random"}
RECIPE = toys.recipe(
    name="served",
    inputs={"image": {"type": "regions", "extractor": ROI}, "caption": {"type": "text", "max_tokens": 6}},
    generator={"max_tokens": 6},
    steps={
        "image": {"inputs": ["image"], "train": ["image"]},
        "both": {"inputs": ["image", "caption"], "train": ["image", "backbone"]},
    },
)
WORDS = ["a red dog barks", "two blue cats sleep on the grass", "what is the man doing"]
ADDRESS = "http://127.0.0.1:8000"


def picture(color: str = "red") -> bytes:
    """A picture as a PNG file. The color is the upper half; the lower one is black."""
    image = Image.new("RGB", (64, 64), color)
    image.paste("black", (0, 32, 64, 64))
    file = BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def encoded(color: str = "red") -> str:
    return base64.b64encode(picture(color)).decode()


def _extracted(recipe, name: str) -> Regions:
    """The input with the width and the fingerprint of its extractor's features."""
    extractor = recipe.inputs[name].extractor
    built = extractor.build()
    (record,) = built.records([Picture("one", lambda: Image.new("RGB", (64, 64)))])
    return Regions(
        width=record.features.shape[1], fingerprint=dict(built.fingerprint), extractor=extractor, fields=("image",)
    )


def predictor(folder, step: str = "both", generator: str = "masked") -> Predictor:
    """The predictor of a step with this generator, which extracts features of pictures with a random network."""
    (folder / "served.toml").write_text(RECIPE.replace('"masked"', f'"{generator}"'))
    recipe = load(folder / "served.toml", installed())[0]
    inputs = {**recipe.inputs, "image": _extracted(recipe, "image")}
    recipe = recipe.model_copy(update={"inputs": inputs})
    torch.manual_seed(0)
    model = compose(recipe.backbone, inputs, recipe.generator, texts=WORDS * 3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return Predictor(model, recipe, step)


def predicts(folder, task: str) -> Predictor:
    """The predictor of one of the five tasks of `kit.asked`, with random weights."""
    (folder / "asked.toml").write_text(asked.recipe_text().replace('"roi"', '"roi", weights = "random"'))
    recipe = load(folder / "asked.toml", asked.registry())[0]
    names = recipe.steps[task].inputs
    inputs = {name: _extracted(recipe, name) if name == "image" else recipe.inputs[name] for name in names}
    recipe = recipe.model_copy(update={"inputs": {**recipe.inputs, **inputs}})
    vocabularies = asked.task_config(task)().build().vocabularies()
    objectives = Objectives({task: recipe.objectives[task]}, vocabularies)
    model = compose(recipe.backbone, inputs, recipe.generator, texts=WORDS, objectives=objectives)
    return Predictor(model, recipe, task)


@contextmanager
def client(served: Predictor, headers=None, **options):
    """A client of the service of a predictor, without a socket. `options`: see `create_app`."""
    from mmgen_serve.app import Service, create_app
    from starlette.testclient import TestClient

    app = create_app(Service(served), "served/both", **options)
    with TestClient(app, ADDRESS, headers=headers, raise_server_exceptions=False) as opened:
        yield opened
