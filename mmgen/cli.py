"""The command line. Heavy imports wait inside the commands, so that help and plugins answer at once."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

import click

from .errors import MmgenError


class Commands(click.Group):
    """Errors that a person can cause: their text, no traceback, exit code 1."""

    def invoke(self, context: click.Context):
        try:
            return super().invoke(context)
        except MmgenError as error:
            click.echo(f"error: {error}", err=True)
            context.exit(1)
        except BrokenPipeError:
            os._exit(1)  # whoever read us has gone; nothing can be said any more


recipe_argument = click.argument("recipe", type=click.Path(path_type=Path))
profile_option = click.option("--profile", help="Which of the recipe's profiles to lay over it.")
set_option = click.option("--set", "sets", multiple=True, metavar="A.B=VALUE", help="Change one setting; VALUE as in TOML. May be repeated.")


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmgen-framework", prog_name="mmgen")
def main() -> None:
    """Pretrained encoders as generators: BERT-gen and visual question generation."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("mmgen").setLevel(logging.INFO)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


@main.command()
@recipe_argument
@profile_option
@set_option
@click.option("--step", help="Only this step, and what it starts from.")
@click.option("--seed", type=int, help="The same as --set seed=N.")
@click.option("--fresh", is_flag=True, help="Throw away what the run folder holds and begin anew.")
def run(recipe: Path, profile: str | None, sets: tuple[str, ...], step: str | None, seed: int | None, fresh: bool) -> None:
    """Learn, write and score every step of RECIPE; goes on where an earlier run stopped."""
    from .progress import Bars

    chosen = _load(recipe, profile, (*sets, *([f"seed={seed}"] if seed is not None else [])))[0]
    if step is not None and step not in chosen.steps:
        raise MmgenError(f"--step: there is no step '{step}'; there are: {', '.join(chosen.steps)}")
    _quiet()
    from . import run as runs

    try:
        runs.run(chosen, only=step, fresh=fresh, progress=Bars())
    except KeyboardInterrupt:
        raise MmgenError("stopped; the same command goes on from the last checkpoint") from None


@main.command()
@recipe_argument
@profile_option
@set_option
def show(recipe: Path, profile: str | None, sets: tuple[str, ...]) -> None:
    """Print RECIPE with all its layers merged, and where each value comes from."""
    chosen, layers = _load(recipe, profile, sets)
    from .show import toml

    click.echo(toml(chosen.identity(), layers))


@main.command()
@click.argument("recipes", nargs=-1, required=True, type=click.Path(path_type=Path))
@set_option
def check(recipes: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Check RECIPES, each with every one of its profiles, without running anything."""
    from . import layers

    problems, count = [], 0
    for recipe in recipes:
        for profile in layers.profiles(recipe) or [None]:
            count += 1
            try:
                _load(recipe, profile, sets)
            except MmgenError as error:
                problems.append(str(error))
    if problems:
        raise MmgenError("\n".join(dict.fromkeys(problems)))
    click.echo(f"{count} set-ups in {len(recipes)} recipe{'s' * (len(recipes) > 1)}: all well")


@main.command()
@click.option("--strict-plugins", is_flag=True, help="Exit with 1 when any plugin is broken or in conflict.")
def plugins(strict_plugins: bool) -> None:
    """List every part that is installed, who provides it, and what failed to load."""
    from .registry import installed

    registry = installed()
    for part in sorted(registry.parts, key=lambda part: (part.kind, part.name)):
        click.echo(f"{part.kind:<10} {part.name:<22} {part.source!s:<24} {part.summary}")
        click.echo(click.style(f"{'':<33} {part.place}", dim=True))
    problems = [*map(str, registry.broken), *registry.conflicts()]
    for problem in problems:
        click.echo(f"error: {problem}", err=True)
    if strict_plugins and problems:
        raise click.exceptions.Exit(1)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("recipes"))
def init(folder: Path) -> None:
    """Copy the recipes that come with mmgen into FOLDER (by default ./recipes)."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    for source in sorted((file for file in files("mmgen.recipes").iterdir() if file.name.endswith(".toml")), key=lambda file: file.name):
        target = folder / source.name
        if target.exists():
            click.echo(f"{target}: there already, left alone")
        else:
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            click.echo(str(target))


def _load(recipe: Path, profile: str | None, sets: tuple[str, ...]):
    from .recipe import load
    from .registry import installed

    return load(recipe, installed(), profile, sets)


def _quiet() -> None:
    """Libraries' own bars and hints would break ours."""
    from transformers.utils import logging as hf

    hf.set_verbosity_error()
    hf.disable_progress_bar()


if __name__ == "__main__":
    sys.exit(main())
