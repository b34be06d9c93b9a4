"""Commands about recipes and runs: run, show, check, init, generate."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import click

from ..commands import (
    LEARNING,
    asked_arguments,
    goes_on,
    jsonl_option,
    profile_option,
    quiet,
    recipe_argument,
    set_option,
)
from ..errors import MmgenError
from ..progress import tell
from .asking import answer_all


@click.command()
@recipe_argument
@profile_option
@set_option
@click.option("--step", help="Only this step, and what it starts from.")
@click.option("--seed", type=int, help="The same as --set seed=N.")
@click.option(
    "--seeds",
    type=click.IntRange(1),
    default=1,
    help="How many runs, with seeds that follow one another; the table then has mean and spread.",
)
@click.option("--fresh", is_flag=True, help="Throw away what the run folder holds and begin anew.")
@click.option(
    "--threads",
    type=click.IntRange(1, 1024),
    help="Processor threads to learn and write with; by default OMP_NUM_THREADS, else one for a small encoder and all "
    "for a larger one.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    help="How many steps may be learnt at a time, each in a process of its own; by default as many as the recipe "
    "says. The weights are the same.",
)
@goes_on("the same command goes on from the last checkpoint")
def run(
    recipe: Path,
    profile: str | None,
    sets: tuple[str, ...],
    step: str | None,
    seed: int | None,
    seeds: int,
    fresh: bool,
    threads: int | None,
    jobs: int | None,
) -> None:
    """Learn, write and score every step of RECIPE; goes on where an earlier run stopped."""
    chosen, layers = load(recipe, profile, (*sets, *([f"seed={seed}"] if seed is not None else [])))
    if step is not None and step not in chosen.steps:
        raise MmgenError(f"--step: there is no step '{step}'; there are: {', '.join(chosen.steps)}")
    quiet()
    logging.getLogger(LEARNING).setLevel(logging.INFO)
    from ..progress import Bars
    from ..runs.run import run as run_recipe
    from ..training.threads import AUTO

    for each in range(chosen.seed, chosen.seed + seeds):
        run_recipe(
            chosen.model_copy(update={"seed": each}),
            only=step,
            fresh=fresh,
            progress=Bars(),
            threads=threads or AUTO,
            jobs=jobs,
            layers=layers,
        )


@click.command()
@recipe_argument
@profile_option
@set_option
def show(recipe: Path, profile: str | None, sets: tuple[str, ...]) -> None:
    """Print RECIPE with all its layers merged, and where each value comes from."""
    from ..recipe.show import toml

    chosen, layers = load(recipe, profile, sets)
    tell(toml(chosen.identity(), layers), wrap=False)


@click.command()
@click.argument("recipes", nargs=-1, required=True, type=click.Path(path_type=Path))
@set_option
def check(recipes: tuple[Path, ...], sets: tuple[str, ...]) -> None:
    """Check RECIPES, each with every one of its profiles, without running anything."""
    from ..recipe.layers import profiles
    from ..recipe.weight_files import weight_file_errors

    problems: list[str] = []
    count = 0
    for recipe in recipes:
        every: list[str | None] = [*profiles(recipe)]
        for profile in every or [None]:
            count += 1
            try:
                problems += weight_file_errors(*load(recipe, profile, sets))
            except MmgenError as error:
                problems.append(str(error))
    if problems:
        raise MmgenError("\n".join(dict.fromkeys(problems)))
    tell(f"{count} set-up{'s' * (count > 1)} in {len(recipes)} recipe{'s' * (len(recipes) > 1)}: all well")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), default=Path("recipes"))
def init(folder: Path) -> None:
    """Copy the recipes that come with mmgen into FOLDER (by default ./recipes)."""
    from importlib.resources import files

    folder.mkdir(parents=True, exist_ok=True)
    come_with = (file for file in files("mmgen").joinpath("recipes").iterdir() if file.name.endswith(".toml"))
    for source in sorted(come_with, key=lambda file: file.name):
        target = folder / source.name
        if target.exists():
            tell(f"{target}: there already, left alone")
        else:
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            tell(target)


@click.command()
@asked_arguments
@click.option("--caption", help="The same as --input caption=TEXT.")
@click.option("--n", default=None, type=click.IntRange(1, 20), help="How many different texts of each.  [default: 1]")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="A.B=VALUE",
    help="A setting of decoding, or an input's extractor (inputs.image.extractor.type=roi). May be repeated.",
)
@click.option("--step", help="Which step's weights; by default the last that reads what is given.")
@jsonl_option
def generate(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    n: int | None,
    sets: tuple[str, ...],
    step: str | None,
    out: Path | None,
) -> None:
    """Write texts with the model of RUN (a run folder) about SOURCES: images, folders of images, JSONL files whose
    fields are inputs; or about what --input gives."""
    if not sources and not pairs and not caption:
        raise MmgenError("give a picture, a folder or a JSONL file of them, --input NAME=VALUE, or --caption")
    quiet()
    from ..evaluation.collapse import collapsed
    from ..inference.load import load_for, search_options
    from ..inference.query import named_values, read_sources, refuse_overwriting

    queries = read_sources(sources, named_values([*([f"caption={caption}"] if caption else []), *pairs]))
    if out:
        refuse_overwriting(out, run, sources, queries)

    def begin(batch_size: int):
        predictor = load_for(run, queries, step, sets)
        return predictor, predictor.answers(queries, search_options(predictor, n, sets), batch_size)

    answers = answer_all(queries, begin, ("writing", "written"), _print, out)
    if remark := collapsed([answer.texts[0].text for answer in answers if answer.texts]):
        tell(remark, err=True)


def _print(line: Mapping) -> None:
    tell(line["id"])
    if "error" in line:
        tell(f"    skipped: {line['error']}", err=True)
    for text in line.get("texts", []):
        tell(f"    {text['score']:6.2f}  {text['text']}")


def load(recipe: Path, profile: str | None, sets: tuple[str, ...]):
    from ..recipe.load import load
    from ..registry import installed

    return load(recipe, installed(), profile, sets)
