"""Sounds for drawn scenes: `python -m mmgen_audio RECIPE` fills the folder that the recipe's audio input reads.

Each thing of a scene plays the note of its kind, from left to right, whether it is in the caption or not."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import numpy as np
from mmgen.errors import DataError, MmgenError
from mmgen.progress import tell
from mmgen.recipe.load import load
from mmgen.registry import installed

from . import Audio
from .waves import write

LOWEST, SECONDS = 220.0, 0.1  # Hertz of the first kind's note, length of a note


@click.command()
@click.argument("recipe", type=click.Path(path_type=Path))
@click.option("--set", "sets", multiple=True, metavar="A.B=VALUE", help="Override one setting; VALUE as in TOML.")
def main(recipe: Path, sets: tuple[str, ...]) -> None:
    """Make a WAV file for every scene of RECIPE's data set."""
    try:
        tell(make(recipe, sets))
    except MmgenError as error:
        tell(f"error: {error}", err=True)
        sys.exit(1)


def make(path: Path, sets: tuple[str, ...] = ()) -> str:
    """Writes the files; returns their number. Raises MmgenError."""
    recipe, _ = load(path, installed(), sets=sets)
    config = next((config for config in recipe.inputs.values() if isinstance(config, Audio)), None)
    if config is None or config.folder is None:
        raise DataError(f'{path}: no input of type "audio" with a folder to fill')
    dataset = recipe.data.build()
    examples = [example for split in dataset.splits() for example in dataset.split(split)]
    if not all("things" in example.facts for example in examples):
        raise DataError(
            f"{path}: the data set '{recipe.data.type}' does not tell what is in its pictures; use drawn scenes"
        )
    kinds = sorted({thing["kind"] for example in examples for thing in example.facts["things"]})
    config.folder.mkdir(parents=True, exist_ok=True)
    for example in examples:
        things = sorted(example.facts["things"], key=lambda thing: thing["box"][0])
        notes = [note(kinds.index(thing["kind"]), config.sample_rate) for thing in things]
        write(config.folder / f"{example.inputs[config.fields[0]]}.wav", np.concatenate(notes), config.sample_rate)
    return f"{config.folder}: {len(examples)} sounds of {len(kinds)} kinds of things"


def note(number: int, sample_rate: int) -> np.ndarray:
    """Half tones above the lowest, swelling and fading."""
    time = np.arange(round(SECONDS * sample_rate)) / sample_rate
    return 0.6 * np.sin(2 * np.pi * LOWEST * 2 ** (number / 12) * time) * np.sin(np.pi * time / SECONDS)


if __name__ == "__main__":
    main()
