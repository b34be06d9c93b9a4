"""Texts that a finished step has written again, with another decoding than its recipe's.

steps/<step>/decodings/<name>/{decoding.json, generations.jsonl, scores.json}
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from pydantic import ValidationError

from ..decoding import Decoding
from ..errors import RecipeError, RunError
from ..files import read_table, write_json
from ..recipe.messages import in_words
from ..recipe.tables import NAME
from .run_folder import RunFolder, differences

LONGEST = 80  # characters of a name that follows from options


def folders(folder: RunFolder, step: str) -> list[Path]:
    """The decodings of a step, by name."""
    return sorted(path.parent for path in folder.step(step).glob("decodings/*/decoding.json"))


def label(step: str, name: str) -> str:
    """What a row of the table is called that stands for a decoding of a step."""
    return f"{step} [{name}]"


def read(folder: Path) -> Decoding:
    """Raises RunError."""
    path = folder / "decoding.json"
    try:
        return Decoding.model_validate(read_table(path))
    except ValidationError as error:
        raise RunError(f"{path}: damaged: {in_words(error.errors()[0])}; delete {folder}") from None


def name_of(decoding: Decoding) -> str:
    """A name that says every option which is not the default: "num_beams-4_length_penalty-0.8". Raises RecipeError
    where it would be too long for a folder."""
    told = {key: value for key, value in decoding if value != type(decoding).model_fields[key].default}
    name = "_".join(f"{key}-{json.dumps(value)}" for key, value in (told or {"num_beams": 1}).items())
    if len(name) > LONGEST:
        raise RecipeError(f"these {len(told)} options make too long a name for a folder; give one with --name")
    return name


def check_name(name: str) -> None:
    """Raises RecipeError for what cannot name a folder."""
    if not re.fullmatch(NAME, name):
        raise RecipeError(f"--name {name}: a name is made of letters, digits, '_', '-' and '.': it names a folder")


def claim(folder: Path, decoding: Decoding) -> None:
    """Make a folder this decoding's. Raises RunError when it is another's, and says what differs."""
    if (folder / "decoding.json").exists():
        changes = differences(read(folder).model_dump(), decoding.model_dump())
        if changes:
            raise RunError(
                f"{folder} holds texts of another decoding ({'; '.join(changes)}); give another --name, or delete it"
            )
        return
    write_json(folder / "decoding.json", decoding.model_dump())
