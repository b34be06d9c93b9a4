"""Find the files of published weights that a step starts from, and errors in their names. Reads no tensor."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..errors import DataError, RunError
from ..files import read_table
from .layers import Layered
from .paths import WEIGHT_FILES
from .tables import EXPORT, Recipe

INDEX = ".index.json"  # ending of an index, which lists the files of a sharded checkpoint
IN_FOLDERS = tuple(f"{stem}{ending}" for stem in ("model.safetensors", "pytorch_model.bin") for ending in ("", INDEX))
EXPECTED = f"give a file ({', '.join(WEIGHT_FILES)}), or a folder with one of {', '.join(IN_FOLDERS)}"


def weight_files(text: str) -> list[Path] | None:
    """The weights files of a path, several if an index lists them; None for a text that looks like a hub name. Raises
    DataError for a path without weights."""
    path = Path(text)
    try:
        if not path.exists():
            if _may_be_hub_name(text):
                return None
            raise DataError(f"'{text}': no such file or folder; {EXPECTED}, or a hub name")
        if path.is_dir():
            path = _file_in_folder(path)
        files = [path.with_name(name) for name in names_in_index(path)] if path.name.endswith(INDEX) else [path]
        missing = [file for file in files if not file.is_file()]
    except (OSError, ValueError) as error:
        raise DataError(f"'{text}': cannot be opened: {error}; {EXPECTED}") from None
    if missing and missing != [path]:
        raise DataError(
            f"{path}: lists {missing[0].name}, which is not in the same folder (missing files: {len(missing)}); "
            "download the missing files"
        )
    if missing or files[0].suffix not in WEIGHT_FILES:
        raise DataError(f"'{text}': not a weights file by its name; {EXPECTED}")
    return files


def names_in_index(index: Path) -> list[str]:
    """The file names in an index. Raises DataError."""
    again = "download the index again from where the weights were published"
    try:
        names = {*map(str, read_table(index, weight_map=dict)["weight_map"].values())}
    except RunError as error:
        raise DataError(f"{error}; {again}") from None
    wrong = sorted(name for name in names if Path(name).name != name or Path(name).suffix not in WEIGHT_FILES)
    if wrong or not names:
        raise DataError(f"{index}: damaged: lists '{''.join(wrong[:1])}', not weights files of its folder; {again}")
    return sorted(names)


def _file_in_folder(folder: Path) -> Path:
    """The weights file of a folder, or the index of its weights files. Raises DataError."""
    known = [folder / name for name in IN_FOLDERS if (folder / name).is_file()]
    files = known[:1] or sorted(path for path in folder.iterdir() if path.suffix in WEIGHT_FILES)
    if len(files) != 1:
        what = f"several weights files ({files[0].name}, {files[1].name})" if files else "no weights file"
        raise DataError(f"'{folder}': the folder has {what}; {EXPECTED}")
    return files[0]


def _may_be_hub_name(text: str) -> bool:
    """Whether a text without such a file may be a hub name: `owner/name` or `name`, without the ending of a file."""
    owner, _, name = text.rpartition("/")
    plain = not text.startswith((".", "~", "/")) and "\0" not in text and "/" not in owner
    return plain and bool(name) and Path(name).suffix not in WEIGHT_FILES and not name.endswith(INDEX)


def check_export(text: str) -> None:
    """Raises DataError for a folder that is not there; names of the hub are not looked up."""
    if not text.startswith("hf:") and not (Path(text) / "recipe.json").is_file():
        raise DataError(
            f"'{text}': not an export; give a folder that `mmgen export` wrote, or {EXPORT}hf:user/name for the hub"
        )


def weight_file_errors(recipe: Recipe, layers: Layered) -> list[str]:
    """Errors in the encoder's weights and in those that steps start from, one line each. Only `mmgen check` calls it: a
    run that has begun no longer needs the files."""
    problems = []
    try:
        recipe.backbone.check_weights()
    except DataError as error:
        place = layers.place(("backbone", "weights"))
        problems.append(f"{place}: {error}" if place else str(error))
    return [*problems, *start_errors(recipe, recipe.steps, layers)]


def start_errors(recipe: Recipe, steps: Iterable[str], layers: Layered) -> list[str]:
    """Errors in the weights that these steps start from, one line each."""
    problems = []
    for name in steps:
        start = recipe.steps[name].weights or ""
        try:
            if start.startswith(EXPORT):
                check_export(start.removeprefix(EXPORT))
            elif start:
                weight_files(start)
        except DataError as error:
            problems.append(f"{layers.opening(('steps', name, 'start'))}{error}")
    return problems
