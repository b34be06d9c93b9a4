"""Find the files of published weights that a step starts from, and errors in their names. Reads no tensor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError, MmgenError
from ..files import read_table
from .layers import Layered
from .paths import WEIGHT_FILES
from .tables import EXPORT, Recipe

INDEX = ".index.json"  # ending of an index, which lists the files of a sharded checkpoint
IN_FOLDERS = tuple(f"{stem}{ending}" for stem in ("model.safetensors", "pytorch_model.bin") for ending in ("", INDEX))
EXPECTED = f"give a file ({', '.join(WEIGHT_FILES)}), or a folder with one of {', '.join(IN_FOLDERS)}"


def weight_files(text: str) -> list[Path] | None:
    """The weights files of a path, several if an index lists them; None for a text that looks like a hub name. Raises
    DataError, RunError for a path without weights."""
    path = Path(text)
    if not path.exists():
        if text[:1] not in (".", "~", "/") and text.count("/") < 2 and not text.endswith((*WEIGHT_FILES, INDEX)):
            return None
        raise DataError(f"'{text}': no such file or folder; {EXPECTED}, or a hub name")
    if path.is_dir():
        known = [path / name for name in IN_FOLDERS if (path / name).is_file()]
        files = known[:1] or [file for file in path.iterdir() if file.suffix in WEIGHT_FILES]
        if len(files) != 1:
            raise DataError(f"'{text}': the folder has {len(files) or 'no'} weights files; {EXPECTED}")
        path = files[0]
    if not path.name.endswith((*WEIGHT_FILES, INDEX)):
        raise DataError(f"'{text}': not a weights file by its name; {EXPECTED}")
    files = [path.with_name(name) for name in names_in_index(path)] if path.name.endswith(INDEX) else [path]
    present = {file.name for file in path.parent.iterdir()}  # an index may list names that no system takes
    if missing := [file.name for file in files if file.name not in present]:
        raise DataError(f"{path}: lists {', '.join(missing)}: not in the same folder; download the missing files")
    return files


def names_in_index(index: Path) -> list[str]:
    """The file names in an index. Raises DataError, RunError."""
    names = {*map(str, read_table(index, weight_map=dict)["weight_map"].values())}
    for name in names:
        if Path(name).name != name or not name.endswith(WEIGHT_FILES):
            raise DataError(f"{index}: damaged: lists '{name}', not a weights file of its folder; download it again")
    return sorted(names)


def check_export(text: str) -> None:
    """Raises DataError for a folder that is not there; names of the hub are not looked up."""
    if not text.startswith("hf:") and not (Path(text) / "recipe.json").is_file():
        raise DataError(
            f"'{text}': not an export; give a folder that `mmgen export` wrote, or {EXPORT}hf:user/name for the hub"
        )


def weight_errors(recipe: Recipe, steps: Iterable[str], layers: Layered) -> list[str]:
    """Errors in the names of the weights that these steps start from, one line each."""
    problems = []
    for name in steps:
        start = recipe.steps[name].weights or ""
        try:
            if start.startswith(EXPORT):
                check_export(start.removeprefix(EXPORT))
            elif start:
                weight_files(start)
        except MmgenError as error:
            problems.append(f"{layers.opening(('steps', name, 'start'))}{error}")
    return problems
