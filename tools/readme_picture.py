"""Draw the README's picture: a test scene, the question that a step of a finished run writes about it, and where the
model looks while it writes two of the words.

    mmgen run recipes/bertgen_vqa.toml --step image --set data.train_size=1000 \
        --set data.val_size=40 --set data.test_size=60 --threads 1
    python -m tools.readme_picture runs/bertgen_vqa/sample/seed-0 --example test-00015 --word what --word bus

The attention is the mean over all heads of all layers, read from the slot that predicts the word. The region of the
whole picture, which comes last, is not drawn."""

from __future__ import annotations

import argparse
import io
from collections.abc import Sequence
from pathlib import Path

from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from PIL import Image

import mmgen
from mmgen import plotting
from mmgen.attention_maps import WordAttention, all_layers, word_attention
from mmgen.data.datasets import pictures_of
from mmgen.data.seeds import resolve

OUT = Path(__file__).resolve().parents[1] / "docs/_static/asks.png"
PANEL, MARGIN = 2.6, 0.6  # inches
COLOUR = "#c2410c"


def look_at_scene(run: Path, step: str, name: str) -> tuple[Image.Image, str, WordAttention]:
    """The picture of a test example, the question about it, and the attention of each word of the question."""
    predictor = mmgen.load(run, step)
    dataset = predictor.recipe.data.build()
    example = next(example for example in dataset.split("test") if example.id == name)
    generation = predictor.ask(example).texts[0]
    texts = [generation.tokens[: predictor.model.generator.max_tokens]]
    inputs = predictor.recipe.steps[step].inputs
    (attention,) = word_attention(predictor.model, [resolve(example)], inputs, texts, {"all": all_layers})
    picture = pictures_of(dataset, [example])[example.inputs["image"]]
    return picture.load().convert("RGB"), generation.text, attention


def draw_scene(
    image: Image.Image, question: str, attention: WordAttention, words: Sequence[str], out: Path = OUT
) -> None:
    """Write a PNG file: the scene, then one panel for each of the words to show."""
    boxes = attention.units["image"].boxes[:-1]
    shares = attention.weights["all"][:, : len(boxes)]  # (words, regions); the image is the first input
    written = [word.strip() for word in attention.words]
    panels = [("the scene, and its regions", "none", "#555555", [0.35] * len(boxes))]
    for word in words:
        strengths = shares[written.index(word)]
        panels.append((f"while it writes “{word}”", COLOUR, COLOUR, (strengths / strengths.max()).tolist()))
    shape = image.height / image.width
    with plotting.figure(PANEL * len(panels), PANEL * shape + MARGIN, salt=out.name) as figure:
        figure.suptitle(question, x=0.005, ha="left", size=13, weight="bold", parse_math=False)
        for axes, (label, face, edge, strengths) in zip(figure.subplots(1, len(panels)), panels, strict=True):
            axes.set_axis_off()
            axes.imshow(image, extent=(0, 1, 1, 0), aspect=shape, interpolation="bilinear")
            axes.text(0, 1.02, label, va="top", parse_math=False)
            for (x0, y0, x1, y1), strength in zip(boxes, strengths, strict=True):
                colours = {"facecolor": to_rgba(face, 0.4 * strength), "edgecolor": to_rgba(edge, max(strength, 0.08))}
                axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, linewidth=1.2, **colours))
        drawing = io.BytesIO()
        figure.savefig(drawing, format="png", dpi=plotting.DOTS)
        Image.open(drawing).convert("RGB").quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--step", default="image")
    parser.add_argument("--example", default="test-00000")
    parser.add_argument("--word", action="append", required=True)
    options = parser.parse_args()
    draw_scene(*look_at_scene(options.run, options.step, options.example), options.word)
