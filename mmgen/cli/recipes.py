"""Commands about recipes: show, check, init."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ..commands import profile_option, recipe_argument, set_option
from ..errors import MmgenError
from ..progress import tell


@click.command()
@recipe_argument
@profile_option
@set_option
def show(recipe: Path, profile: str | None, sets: tuple[str, ...]) -> None:
    """Print RECIPE with all layers merged, and the origin of each value; name each key that has no effect."""
    from ..recipe.show import toml

    loaded_recipe, layers = load_recipe(recipe, profile, sets)
    tell(toml(loaded_recipe.identity(), layers))
    for remark in layers.remarks:
        tell(remark, err=True)


@click.command()
@click.argument("recipes", nargs=-1, required=True, type=click.Path(path_type=Path))
@set_option
def check(recipes: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Check RECIPES, with all of their profiles, without running anything."""
    from ..recipe.layers import profiles
    from ..recipe.weight_files import weight_errors

    problems, notes = list[str](), list[str]()
    count = 0
    for recipe in recipes:
        try:
            profile_names = profiles(recipe)
        except MmgenError as error:  # no such file, say; the other recipes are checked
            problems.append(str(error))
            continue
        count += len(profile_names)
        places: dict[str, list[str | None]] = {}  # problem -> the profiles that have it
        for profile in profile_names:
            try:
                resolved, layers = load_recipe(recipe, profile, sets)
                lines = weight_errors(resolved, resolved.steps, layers)
                notes += layers.remarks
                notes += [
                    f"{layers.opening(('callbacks', name))}{problem}; a run goes on without this callback"
                    for name, callback in resolved.callbacks.items()
                    if (problem := callback.problem())
                ]
            except MmgenError as error:
                lines = str(error).split("\n")
                notes += getattr(error, "__notes__", [])
            for line in lines:
                places.setdefault(line, []).append(profile)
        problems += [
            line if len(found_in) == len(profile_names) else f"{line} ({_name_profiles(found_in)})"
            for line, found_in in places.items()
        ]
    for note in dict.fromkeys(notes):
        tell(note, err=True)
    if problems:
        raise MmgenError("\n".join(dict.fromkeys(problems)))
    tell(f"{count} configuration{'s' * (count > 1)} in {len(recipes)} recipe{'s' * (len(recipes) > 1)}: no errors")


def _name_profiles(names: Sequence[str | None]) -> str:
    """Profiles as text: "profiles sample and paper"; None is the recipe without one."""
    named = [name for name in names if name]
    words = [f"profile{'s' * (len(named) > 1)} {', '.join(named)}"] if named else []
    return " and ".join(["without a profile"] * (None in names) + words)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("recipes"))
def init(folder: Path) -> None:
    """Copy mmgen's example recipes into FOLDER (default: ./recipes)."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    recipe_files = (file for file in files("mmgen").joinpath("recipes").iterdir() if file.name.endswith(".toml"))
    for source in sorted(recipe_files, key=lambda file: file.name):
        target = folder / source.name
        if target.exists():
            tell(f"{target}: already exists; skipped")
        else:
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            tell(target)


def load_recipe(recipe: Path, profile: str | None, sets: tuple[str, ...]):
    """The checked recipe that a command names, and where every value came from."""
    from ..recipe.load import load
    from ..registry import installed

    return load(recipe, installed(), profile, sets)
