"""Small runs on drawn pictures, made once per process, which tests load, export and damage: "writes" has a step that
reads captions, and one that reads pictures too; "predicts" gives labels, choices and regions."""

import contextlib
import functools
import io
import logging
import tempfile
from pathlib import Path
from unittest import mock

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run

BEAMS = "[decoding]\nnum_beams = 2\n"


def drawn(name: str, generator: str = "masked") -> Path:
    """The folder of the finished run "writes" or "predicts"; its recipe is `recipe_of(name)`."""
    return recipe_of(name, generator).parent / "runs" / name / "default" / "seed-0"


def recipe_of(name: str, generator: str = "masked") -> Path:
    return Path(_make(name, generator).name) / f"{name}.toml"


@functools.cache
def _make(name: str, generator: str) -> tempfile.TemporaryDirectory:
    holder = tempfile.TemporaryDirectory(prefix=f"mmgen-{name}-")
    path = Path(holder.name) / f"{name}.toml"
    text = Path(__file__).with_name(path.name).read_text(encoding="utf-8")
    if generator != "masked":
        text = text.replace(BEAMS, "").replace('"masked"', f'"{generator}"')
    path.write_text(text, encoding="utf-8")
    recipe = load(path, installed())[0].model_copy(update={"output": str(path.parent / "runs")})
    logging.disable(logging.WARNING)
    with contextlib.redirect_stderr(io.StringIO()), mock.patch("mmgen.report.try_page"):
        run(recipe)
    logging.disable(logging.NOTSET)
    return holder
