"""Further decodings, texts of a finished step with other settings: their folders, names, labels, and claims.

steps/<step>/decodings/<name>/{decoding.json, generations.jsonl, scores.json}
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from ..decoding import DecodingConfig
from ..errors import RecipeError, RunError
from ..files import read_table, write_json
from ..recipe.messages import mistake_text
from ..recipe.tables import NAME
from .run_folder import RunFolder, differences

Options = TypeVar("Options", bound=DecodingConfig)
MAX_NAME = 80  # characters of a name made from options


def folders(folder: RunFolder, step: str) -> list[Path]:
    """The decodings of a step, by name."""
    return sorted(path.parent for path in folder.step(step).glob("decodings/*/decoding.json"))


def label(step: str, name: str) -> str:
    """The label of a decoding's row in the table."""
    return f"{step} [{name}]"


def read(folder: Path, cls: type[Options]) -> Options:
    """The decoding of a folder, of the class that the run's generator names. Raises RunError."""
    path = folder / "decoding.json"
    try:
        return cls.model_validate(read_table(path))
    except ValidationError as error:
        raise RunError(f"{path}: damaged: {mistake_text(error.errors()[0])}; delete {folder}") from None


def name_of(decoding: DecodingConfig) -> str:
    """A folder name with all options that differ from the defaults: "num_beams-4_length_penalty-0.8". Raises
    RecipeError if the name is too long."""
    changed = {key: value for key, value in decoding if value != type(decoding).model_fields[key].default}
    shown = changed or dict([*decoding][:1])
    name = "_".join(f"{key}-{value if isinstance(value, str) else json.dumps(value)}" for key, value in shown.items())
    if len(name) > MAX_NAME:
        raise RecipeError(
            f"the folder name made from these {len(changed)} options is too long; choose a name with --name"
        )
    return name


def check_name(name: str) -> None:
    """Raises RecipeError for an invalid folder name."""
    if not re.fullmatch(NAME, name):
        raise RecipeError(f"--name {name}: a folder name must consist of letters, digits, '_', '-' and '.'")


def claim(folder: Path, decoding: DecodingConfig) -> None:
    """Reserve a folder for a decoding. Raises RunError, with the differences, if it belongs to a different decoding."""
    if (folder / "decoding.json").exists():
        changes = differences(read(folder, type(decoding)).model_dump(), decoding.model_dump())
        if changes:
            raise RunError(
                f"{folder} contains texts of a different decoding ({'; '.join(changes)}); choose another --name, or "
                "delete the folder"
            )
        return
    write_json(folder / "decoding.json", decoding.model_dump())
