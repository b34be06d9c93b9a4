"""The files of published weights that a step starts from: which ones a path stands for. Reads no tensor."""

from __future__ import annotations

from pathlib import Path

from ..errors import DataError, RunError
from ..files import read_table
from .layers import Layered
from .paths import WEIGHT_FILES
from .tables import Recipe

INDEX = ".index.json"  # ends the name of a file that says which others hold what
IN_FOLDERS = tuple(f"{stem}{ending}" for stem in ("model.safetensors", "pytorch_model.bin") for ending in ("", INDEX))
WANTED = f"give a file ({', '.join(WEIGHT_FILES)}), or a folder with one of {', '.join(IN_FOLDERS)}"


def weight_files(text: str) -> list[Path] | None:
    """The files that a path stands for, several where an index names them; None for what looks like a hub name. Raises
    DataError for a path that is none of weights."""
    path = Path(text)
    try:
        if path.is_dir():
            path = _in_folder(path)
        elif not path.exists():
            if not _hub_name(text):
                raise DataError(f"'{text}': no such file or folder; {WANTED}, or a hub name")
            return None
        if path.name.endswith(INDEX):
            return named_by(path)
    except (OSError, ValueError) as error:
        raise DataError(f"'{text}': cannot be opened: {error}; {WANTED}") from None
    if path.suffix not in WEIGHT_FILES:
        raise DataError(f"'{text}': no file of weights by its name; {WANTED}")
    if not path.is_file():
        raise DataError(f"'{text}': no regular file; {WANTED}")
    return [path]


def named_by(index: Path) -> list[Path]:
    """The files that an index names, beside it. Raises DataError."""
    files = [index.with_name(name) for name in names_in(index)]
    if missing := [file for file in files if not file.is_file()]:
        raise DataError(f"{index}: names {missing[0].name}, which is not beside it ({len(missing)} are not)")
    return files


def names_in(index: Path) -> list[str]:
    """The names of files that an index has. Raises DataError."""
    try:
        names = [*read_table(index, weight_map=dict)["weight_map"].values()]
    except RunError as error:
        raise DataError(f"{error}; take it from where the weights were published") from None
    if not names or not all(isinstance(name, str) and name and Path(name).name == name for name in names):
        raise DataError(f"{index}: damaged: it names no files beside it; take it from where the weights were published")
    if wrong := sorted(name for name in set(names) if Path(name).suffix not in WEIGHT_FILES):
        raise DataError(f"{index}: names {wrong[0]}, which is no file of weights; {WANTED}")
    return sorted(set(names))


def _in_folder(folder: Path) -> Path:
    """The one of a folder's files that has weights, or says which have."""
    known = [folder / name for name in IN_FOLDERS if (folder / name).is_file()]
    found = known[:1] or sorted(each for each in folder.iterdir() if each.suffix in WEIGHT_FILES)
    if len(found) != 1:
        what = f"several files of weights ({found[0].name}, {found[1].name})" if found else "no file of weights"
        raise DataError(f"'{folder}': the folder has {what}; {WANTED}")
    return found[0]


def _hub_name(text: str) -> bool:
    """Whether a text that is no path here may be a name: `owner/name` or `name`, and no file by its ending."""
    owner, _, name = text.rpartition("/")
    plain = not text.startswith((".", "~", "/")) and "\0" not in text and "/" not in owner
    return plain and bool(name) and Path(name).suffix not in WEIGHT_FILES and not name.endswith(INDEX)


def unfound(recipe: Recipe, layers: Layered) -> list[str]:
    """What is wrong with the published weights that steps start from, as far as no tensor has to be read: a line each.
    A run that has begun does without them, so only `mmgen check` asks."""
    problems = []
    for name, step in recipe.steps.items():
        if step.weights is None:
            continue
        try:
            weight_files(step.weights)
        except DataError as error:
            problems.append(f"{layers.opening(('steps', name, 'start'))}{error}")
    return problems
