"""`mmgen ray`: shards of a command, and steps of a recipe, as tasks of Ray."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from mmgen.commands import goes_on, training_options
from mmgen.errors import MmgenError
from mmgen.files import write_text
from mmgen.progress import Bars
from mmgen.recipe.load import load
from mmgen.registry import installed

address_option = click.option("--address", help="A Ray that runs (auto, host:6379); by default one is started here.")


@click.group()
def ray() -> None:
    """Run shards of a command, or steps of a recipe, as tasks of Ray.

    All machines need the same packages, and see the same files under the same paths. A worker that ends is replaced;
    after anything else, the same command continues."""


@ray.command(context_settings={"ignore_unknown_options": True})
@address_option
@click.option("--shards", "count", type=click.IntRange(1, 999_999), help="Their number; by default one for each task.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@goes_on("run the same command again to continue")
def shards(address: str | None, count: int | None, command: tuple[str, ...]) -> None:
    """Run COMMAND in shards, and join them.

    COMMAND is `features extract SOURCE STORE ...`, `generate ... --out FILE` or `predict ... --out FILE`."""
    targets = command[command.index("--out") + 1 :] if "--out" in command else ()
    if not targets and command[0] != "features":
        raise MmgenError("ray shards: name the file to join the shards to: --out FILE")
    from .cluster import cluster

    with cluster(address) as started:
        count = count or started.slots
        parts = [f"{number}/{count}" for number in range(1, count + 1)]
        started.run_all({f"shard {part}": [*command, "--shard", part] for part in parts})
    if targets:
        from mmgen.inference.answers import shard_path

        files = [shard_path(Path(targets[0]), number, count) for number in range(1, count + 1)]
        write_text(Path(targets[0]), "".join(file.read_text(encoding="utf-8") for file in files))


@ray.command()
@training_options
@address_option
@goes_on("run the same command again to resume from the last checkpoints")
def run(recipe: Path, steps: tuple[str, ...], threads: int | None, **options: Any) -> None:
    """Train the steps of RECIPE on the workers.

    Their texts are written and scored as by `mmgen run`."""
    seed = [f"seed={options['seed']}"] if options["seed"] is not None else []
    loaded, layers = load(recipe, installed(), options["profile"], (*options["sets"], *seed))
    loaded.check_steps(steps)
    from mmgen.runs.jobs import Jobs

    from .cluster import RemoteChild, cluster

    with cluster(options["address"], threads or 1) as started:
        from mmgen.runs.run import run_seeds

        jobs = Jobs(max(2, started.slots), partial(RemoteChild, started))
        settings = {"only": steps, "fresh": options["fresh"], "threads": threads or "auto", "jobs": jobs}
        run_seeds(loaded, options["seeds"], Bars(), layers=layers, **settings)
