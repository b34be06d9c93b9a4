"""An exported model in bfloat16 beside the same in float32: logits, scores and texts on test examples, and the sizes of
both exports. The model is trained on drawn scenes for a few epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

import mmgen
from mmgen.data.collate import Collator
from mmgen.inference.export import export
from mmgen.inference.load import load_run
from mmgen.inference.predictor import Predictor
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.tensors import Example

from .synthetic import Arguments, arguments, heads, tell

RECIPE = """
name = "exported"
output = "{folder}/runs"
[backbone]
type = "bert"
num_hidden_layers = {layers}
hidden_size = {width}
num_attention_heads = {heads}
[inputs.image]
type = "regions"
normalize = "standard"
extractor = {{ type = "roi" }}
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
epochs = {epochs}
batch_size = 16
learning_rate = 1e-4
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
[data]
type = "scenes"
train_size = {images}
val_size = 1
test_size = {written}
"""
CASES = {  # name -> whether the weights are stored as bfloat16, and the numbers in which the model computes
    "float32": (False, "float32"),
    "stored in bfloat16": (True, "float32"),
    "stored and computed in bfloat16": (True, "bfloat16"),
}


def compare(chosen: Arguments, folder: Path) -> dict[str, Any]:
    """The differences of each case from float32."""
    sizes = {"layers": chosen.layers, "width": chosen.width, "heads": heads(chosen.width), "epochs": chosen.epochs}
    sizes |= {"images": chosen.images, "written": chosen.written, "folder": folder}
    (folder / "exported.toml").write_text(RECIPE.format(**sizes), encoding="utf-8")
    recipe = load(folder / "exported.toml", installed())[0]
    trained = load_run(run(recipe).path, "both")
    examples = trained.recipe.data.build().split("test")
    folders = {half: export(trained, folder / f"half-{half}", half=half) for half in (False, True)}
    results: dict[str, tuple[torch.Tensor, list[str], list[float]]] = {}
    for name, (half, dtype) in CASES.items():
        model = mmgen.load(folders[half], device=chosen.device, dtype=dtype)
        for input_name, embedder in trained.features.embedders.items():
            model.features.embedders[input_name].reader.path = embedder.reader.path  # the same features for all
        texts = [texts[0] for texts in model.generate(examples)]
        results[name] = logits(model, examples), [text.text for text in texts], [text.score for text in texts]
    first, *rest = CASES
    return {
        "examples": len(examples),
        "bytes": {str(half): size(place) for half, place in folders.items()},
        "cases": {name: difference(results[first], results[name]) for name in rest},
    }


def difference(
    first: tuple[torch.Tensor, list[str], list[float]], second: tuple[torch.Tensor, list[str], list[float]]
) -> dict[str, float | None]:
    """The differences of logits, as shares of their standard deviation; the share of equal texts; and the mean
    difference of the scores of equal texts, None if no texts are equal."""
    logits_difference = (first[0] - second[0]).abs() / first[0].std()
    equal = [a == b for a, b in zip(first[1], second[1], strict=True)]
    scores = [abs(a - b) for a, b, same in zip(first[2], second[2], equal, strict=True) if same]
    return {
        "mean_logits": logits_difference.mean().item(),
        "most_logits": logits_difference.max().item(),
        "equal_texts": sum(equal) / len(equal),
        "scores": sum(scores) / len(scores) if scores else None,
    }


@torch.inference_mode()
def logits(model: Predictor, examples: Sequence[Example]) -> torch.Tensor:
    """The logits (slots, V) of the slots of the inputs, as float32 on the CPU."""
    batch = Collator(model.model, tuple(model.names.inputs), objectives=())(examples[:64]).to(model.model.device)
    states = model.model.encode(batch).first
    return model.model.backbone.logits(states).float().flatten(0, -2).cpu()


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.safetensors"))


def _more(parser) -> None:
    parser.add_argument("--images", type=int, default=1200)
    parser.add_argument("--written", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=4)


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    with TemporaryDirectory() as temporary:
        tell(compare(options, Path(temporary)))
