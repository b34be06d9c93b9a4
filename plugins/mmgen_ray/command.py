"""`mmgen ray`: shards of a command, and steps of a recipe, as tasks of Ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from mmgen.commands import goes_on, quiet, together, training_options
from mmgen.errors import MmgenError
from mmgen.progress import Bars
from mmgen.recipe.load import load
from mmgen.registry import installed

cluster_options = together(
    click.option("--address", help="A Ray that runs, such as auto or host:6379; by default one is started."),
    click.option("--slots", type=click.IntRange(1), help="Without --address: its number of CPUs; by default all."),
)


@click.group()
def ray() -> None:
    """Run shards of a command, or steps of a recipe, as tasks of Ray.

    All machines need the same packages, and see the same files under the same paths. A worker that ends is replaced;
    after anything else, the same command continues."""


@ray.command(context_settings={"ignore_unknown_options": True})
@cluster_options
@click.option("--shards", "count", type=click.IntRange(1, 999_999), help="Their number; by default one for each task.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@goes_on("run the same command again to continue")
def shards(address: str | None, slots: int | None, count: int | None, command: tuple[str, ...]) -> None:
    """Run COMMAND in shards, and join them: `features extract SOURCE STORE.h5 ...`, `generate ... --out FILE` or
    `predict ... --out FILE`."""
    stores = [name for name in command if name.endswith((".h5", ".hdf5"))]
    targets = command[command.index("--out") + 1 :] if "--out" in command else stores
    if not targets:
        raise MmgenError("ray shards: name the file to join the shards to: STORE.h5, or --out FILE")
    from .cluster import cluster

    with cluster(address, slots) as started:
        names = [f"{number}/{count or started.slots}" for number in range(1, (count or started.slots) + 1)]
        started.run_all({f"shard {name}": [*command, "--shard", name] for name in names})
    joined = subprocess.run([sys.executable, "-m", "mmgen", "merge", targets[0]])
    click.get_current_context().exit(joined.returncode)


@ray.command()
@training_options
@cluster_options
@goes_on("run the same command again to resume from the last checkpoints")
def run(recipe: Path, steps: tuple[str, ...], threads: int | None, **options: Any) -> None:
    """Train the steps of RECIPE on the workers, write their texts and score them, as `mmgen run`."""
    seed = [f"seed={options['seed']}"] if options["seed"] is not None else []
    loaded, layers = load(recipe, installed(), options["profile"], (*options["sets"], *seed))
    loaded.check_steps(steps)
    from .cluster import cluster

    with cluster(options["address"], options["slots"], threads or 1) as started:
        quiet()
        from mmgen.runs.run import refresh_page
        from mmgen.runs.run import run as run_recipe

        settings = {"only": steps, "fresh": options["fresh"], "threads": threads or "auto", "layers": layers}
        for number in range(loaded.seed, loaded.seed + options["seeds"]):
            seeded = loaded.model_copy(update={"seed": number})
            folder = run_recipe(seeded, progress=Bars(), jobs=started.jobs(), **settings)
    if options["seeds"] > 1:
        refresh_page(folder.path.parent, Bars())
