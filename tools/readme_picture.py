"""Draw the README's picture: a test scene, the question that a step of a finished run writes about it, and where the
model looks while it writes two of the words.

    mmgen run recipes/bertgen_vqa.toml --step image --set data.train_size=1000 \
        --set data.val_size=40 --set data.test_size=60 --threads 1
    python -m tools.readme_picture runs/bertgen_vqa/sample/seed-0 --example test-00015 --word what --word bus

The attention is the mean over all heads of all layers, read from the slot that predicts the word. The region of the
whole picture, which comes last, is not drawn.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle
from PIL import Image

from mmgen import plotting
from mmgen.attention_maps import WordAttention, all_layers, word_attention
from mmgen.data.datasets import pictures_of
from mmgen.data.seeds import resolve
from mmgen.inference.load import load_run

OUT = Path(__file__).resolve().parents[1] / "docs/_static/asks.png"
PANEL, GAP, TOP, BOTTOM = 2.5, 0.12, 0.55, 0.3  # inches
COLOUR = "#c2410c"


def look_at_scene(run: Path, step: str, name: str) -> tuple[Any, str, WordAttention]:
    """The picture of a test example, the question about it, and the attention of each word of the question."""
    predictor = load_run(run, step)
    dataset = predictor.recipe.data.build()
    example = next(example for example in dataset.split("test") if example.id == name)
    ((generation, *_),) = predictor.generate([example])
    texts = [generation.tokens[: predictor.model.generator.max_tokens]]
    inputs = predictor.recipe.steps[step].inputs
    (attention,) = word_attention(predictor.model, [resolve(example)], inputs, texts, {"all": all_layers})
    picture = pictures_of(dataset, [example])[example.inputs["image"]]
    return picture.load().convert("RGB"), generation.text, attention


def draw_scene(image: Any, question: str, attention: WordAttention, shown: list[str], out: Path) -> None:
    """Write a PNG file: the scene, then one panel for each of the words to show."""
    regions = attention.units["image"]
    things = regions.boxes[:-1]  # without the whole picture
    shares = attention.weights["all"][:, : len(things)]  # (words, regions); the image is the first input
    words = [[word.strip() for word in attention.words].index(word) for word in shown]
    height = PANEL * image.height / image.width
    width = (len(words) + 1) * (PANEL + GAP) + GAP
    with plotting.figure(width, height + TOP + BOTTOM, salt=out.name, layout="none") as figure:
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.text(GAP, 0.14, question, va="top", size=13, weight="bold", parse_math=False)
        for panel, word in enumerate([None, *words]):
            left = GAP + panel * (PANEL + GAP)
            axes.imshow(image, extent=(left, left + PANEL, TOP + height, TOP), aspect="auto", interpolation="bilinear")
            label = (
                "the scene, and its regions" if word is None else f"while it writes “{attention.words[word].strip()}”"
            )
            axes.text(left, TOP + height + 0.06, label, va="top", size=9, parse_math=False)
            strengths = [0.35] * len(things) if word is None else (shares[word] / shares[word].max()).tolist()
            for (x0, y0, x1, y1), strength in zip(things, strengths, strict=True):
                corner, size = (left + x0 * PANEL, TOP + y0 * height), ((x1 - x0) * PANEL, (y1 - y0) * height)
                face = "none" if word is None else to_rgba(COLOUR, 0.4 * strength)
                edge = to_rgba("#555555" if word is None else COLOUR, max(strength, 0.08))
                axes.add_patch(Rectangle(corner, *size, facecolor=face, edgecolor=edge, linewidth=1.2))
        axes.set(xlim=(0, width), ylim=(height + TOP + BOTTOM, 0), aspect="auto")
        drawing = io.BytesIO()
        figure.savefig(drawing, format="png", dpi=plotting.DOTS)
        Image.open(drawing).convert("RGB").quantize(128).save(out, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--step", default="image")
    parser.add_argument("--example", default="test-00000")
    parser.add_argument("--word", action="append", required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    draw_scene(*look_at_scene(arguments.run, arguments.step, arguments.example), arguments.word, arguments.out)
