"""`mmgen ray`: commands that Ray can share out, with the options that they have in one process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from mmgen.commands import (
    goes_on,
    jsonl_option,
    query_arguments,
    quiet,
    settings_option,
    store_options,
    together,
    training_options,
    writing_options,
)
from mmgen.errors import MmgenError, RunError
from mmgen.progress import Bars, tell
from mmgen.recipe.load import load
from mmgen.registry import installed

cluster_options = together(
    click.option("--address", help="A Ray that runs, such as auto or host:6379; by default one is started."),
    click.option(
        "--slots",
        type=click.IntRange(1),
        help="Without --address: tasks at the same time; by default one for each core. With GPUs, one for each GPU.",
    ),
)
shards_option = click.option("--shards", type=click.IntRange(1, 999_999), help="Their number; by default one a task.")
CLUSTER = ("address", "slots", "shards")


@click.group()
def ray() -> None:
    """Run shards of a command, or steps of a recipe, as tasks of Ray.

    All machines need the same packages, and see the same files under the same paths. A worker that ends is replaced;
    after anything else, the same command continues."""


@ray.group()
def features() -> None:
    """Create feature stores."""


@features.command()
@store_options
@cluster_options
@shards_option
@goes_on("run the same command again to continue")
def extract(store: Path, **options: Any) -> None:
    """Extract features from the images in SOURCE into STORE, as `mmgen features extract`."""
    _run_shards(["features", "extract"], store)


@ray.command()
@writing_options
@jsonl_option
@cluster_options
@shards_option
@goes_on("run the same command again to continue")
def generate(out: Path | None, **options: Any) -> None:
    """Generate texts with the model in the run folder RUN, as `mmgen generate`."""
    _run_shards(["generate"], out)


@ray.command()
@query_arguments
@settings_option("A.B=VALUE", "Override the extractor of an input (inputs.image.extractor.type=roi).")
@click.option("--step", help="The step whose weights to use; by default the best one that predicts.")
@jsonl_option
@cluster_options
@shards_option
@goes_on("run the same command again to continue")
def predict(out: Path | None, **options: Any) -> None:
    """Predict with the model in the run folder RUN, as `mmgen predict`."""
    _run_shards(["predict"], out)


def _arguments(context: click.Context, without: tuple[str, ...]) -> Iterator[str]:
    """The arguments and options of the command that runs, as they are written."""
    for parameter in context.command.params:
        value = context.params[parameter.name or ""]
        if parameter.name not in without and value not in (None, False, ()):
            for item in value if isinstance(value, tuple) else (value,):
                yield from parameter.opts[:1] if isinstance(parameter, click.Option) else ()
                yield from () if item is True else (str(item),)


def _run_shards(command: list[str], path: Path | None) -> None:
    """Run the shards of a command, and join them to `path`."""
    from .cluster import check_installed, cluster

    check_installed()
    if path is None:
        raise MmgenError("requires --out FILE")
    context = click.get_current_context()
    arguments, params = [*command, *_arguments(context, CLUSTER)], context.params
    with cluster(params["address"], params["slots"]) as started:
        count = params["shards"] or started.slots
        shards = {f"shard {n}/{count}": [*arguments, "--shard", f"{n}/{count}"] for n in range(1, count + 1)}
        started.run_all(shards)
    context.exit(subprocess.run([sys.executable, "-m", "mmgen", "merge", str(path)]).returncode)


@ray.command()
@training_options
@cluster_options
@goes_on("run the same command again to resume from the last checkpoints")
def run(recipe: Path, sets: tuple[str, ...], steps: tuple[str, ...], seed: int | None, **options: Any) -> None:
    """Train every step of RECIPE, write its texts and score them.

    Like `mmgen run`, but with the steps of all seeds at the same time, each after the step from which it starts."""
    from .cluster import check_installed, cluster

    check_installed()
    sets, threads, seeds = (
        (*sets, *([f"seed={seed}"] if seed is not None else [])),
        options["threads"],
        options["seeds"],
    )
    loaded, layers = load(recipe, installed(), options["profile"], sets)
    loaded.check_steps(steps)
    quiet()
    from mmgen.runs.run import refresh_page
    from mmgen.runs.run import run as run_recipe

    with cluster(options["address"], options["slots"], threads or 1) as started:
        if seeds == 1:
            jobs, fresh = started.jobs(), options["fresh"]
            run_recipe(
                loaded, only=steps, fresh=fresh, progress=Bars(), threads=threads or "auto", jobs=jobs, layers=layers
            )
            return
        again = [*_arguments(click.get_current_context(), ("seed", "seeds", *CLUSTER)), "--address", started.address]
        numbers = range(loaded.seed, loaded.seed + seeds)
        with ThreadPoolExecutor(seeds) as pool:
            failed = [
                number for number in pool.map(lambda number: _run_seed(number, again), numbers) if number is not None
            ]
    if failed:
        raise RunError(f"seed {failed[0]}: its run has failed; its last line says why")
    refresh_page(Path(loaded.output) / loaded.name / (loaded.profile or "default"), Bars())


def _run_seed(number: int, arguments: list[str]) -> int | None:
    """Run a seed in its own process, and print what it says. Returns the number if it fails."""
    command = [sys.executable, "-m", "mmgen", "ray", "run", *arguments, "--seed", str(number)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            tell(f"seed {number}: {line.rstrip()}")
    return number if process.returncode else None
