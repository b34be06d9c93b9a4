"""`mmgen ray`: the commands that Ray can share out, with the options that they have in one process."""

from __future__ import annotations

from pathlib import Path

import click

from mmgen.commands import (
    caption_option,
    goes_on,
    jsonl_option,
    query_arguments,
    settings_option,
    store_options,
    together,
    training_options,
    writing_options,
)
from mmgen.errors import MmgenError
from mmgen.progress import tell

from .engine import check_installed, engine

cluster_options = together(
    click.option("--address", help="A Ray that runs, such as auto or host:6379; by default one is started."),
    click.option(
        "--slots",
        type=click.IntRange(1),
        help="Without --address: tasks at the same time; by default one for each core. With GPUs, one for each GPU.",
    ),
)
shards_option = click.option(
    "--shards",
    type=click.IntRange(1, 999_999),
    help="Number of shards; by default as before, or else four for each task that can run at the same time.",
)


@click.group()
def ray() -> None:
    """Run shards of a command, or steps of a recipe, as tasks of Ray.

    The steps may be of several seeds. All machines need the same packages, and see the same files under the same paths.
    A worker that ends is replaced; after anything else, the same command continues.
    """


@ray.group()
def features() -> None:
    """Create feature stores."""


@features.command()
@store_options
@cluster_options
@shards_option
@click.option("--no-merge", is_flag=True, help="Leave the shards; together they are one store.")
@goes_on("run the same command again to continue")
def extract(
    source: str,
    store: Path,
    kind: str,
    sets: tuple[str, ...],
    float32: bool,
    address: str | None,
    slots: int | None,
    shards: int | None,
    no_merge: bool,
) -> None:
    """Extract features from the images in SOURCE into STORE.

    The features are those of `mmgen features extract`. Images that cannot be read are listed in STORE.broken.tsv.
    """
    check_installed()
    from mmgen.configs import ExtractorConfig
    from mmgen.features.extract import mostly_failed
    from mmgen.features.picture_sources import pictures_of
    from mmgen.recipe.load import part_from
    from mmgen.registry import installed

    from .shards import Extraction, list_broken, merge_features, run_shards

    if part_from(ExtractorConfig, kind, sets, installed()).source == "file":
        raise MmgenError(f"--type {kind}: reads published files; use `mmgen features import`")
    next(iter(pictures_of(source)))
    work = Extraction(Path.cwd(), source, store, kind, sets, float32)
    with engine(address, slots) as cluster:
        broken = run_shards(cluster, work, store, shards, "images")
    failures = [row for rows in broken for row in rows]
    list_broken(store, failures)
    tell(f"{store}: {(count := merge_features(work, not no_merge))} images")
    if failure := mostly_failed(store, len(failures), count):
        raise MmgenError(failure)


@ray.command()
@writing_options
@jsonl_option
@cluster_options
@shards_option
@goes_on("run the same command again to continue")
def generate(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    n: int | None,
    sets: tuple[str, ...],
    step: str | None,
    seed: int | None,
    out: Path | None,
    address: str | None,
    slots: int | None,
    shards: int | None,
) -> None:
    """Generate texts with the model in the run folder RUN.

    SOURCES are images, folders of images, or JSONL files whose fields are inputs, as for `mmgen generate`."""
    pairs = (*([f"caption={caption}"] if caption else []), *pairs)
    _answer((run, sources, pairs, sets, step), (n, seed), out, True, (address, slots, shards))


@ray.command()
@query_arguments
@caption_option
@settings_option("A.B=VALUE", "Override the extractor of an input (inputs.image.extractor.type=roi).")
@click.option("--step", help="The step whose weights to use; by default the best one that predicts.")
@jsonl_option
@cluster_options
@shards_option
@goes_on("run the same command again to continue")
def predict(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    sets: tuple[str, ...],
    step: str | None,
    out: Path | None,
    address: str | None,
    slots: int | None,
    shards: int | None,
) -> None:
    """Predict with the model in the run folder RUN.

    SOURCES are those of `mmgen predict`."""
    pairs = (*([f"caption={caption}"] if caption else []), *pairs)
    _answer((run, sources, pairs, sets, step), (None, None), out, False, (address, slots, shards))


Asked = tuple[Path, tuple[Path, ...], tuple[str, ...], tuple[str, ...], str | None]


def _answer(
    query: Asked,
    texts: tuple[int | None, int | None],
    out: Path | None,
    writes: bool,
    cluster: tuple[str | None, int | None, int | None],
) -> None:
    """Answer the queries of run, sources, pairs, sets and step in shards, and write them to `out`. `texts`: their
    number and their seed."""
    check_installed()
    from mmgen.inference.query import refuse_overwriting

    from .shards import Answers, list_broken, merge_answers, run_shards

    (run, sources, pairs, sets, step), (address, slots, shards) = query, cluster
    if not sources:
        raise MmgenError("no input; give a picture, a folder, or a JSONL file")
    if out is None:
        raise MmgenError("requires --out FILE")
    refuse_overwriting(out, sources)
    work = Answers(Path.cwd(), run, sources, pairs, sets, step, *texts, out, writes)
    with engine(address, slots) as started:
        run_shards(started, work, out, shards, "answers")
    count, broken = merge_answers(work)
    list_broken(out, broken)
    tell(f"{out}: {count} line{'s' * (count != 1)}")


@ray.command()
@training_options
@cluster_options
@goes_on("run the same command again to resume from the last checkpoints")
def run(
    recipe: Path,
    profile: str | None,
    sets: tuple[str, ...],
    steps: tuple[str, ...],
    seed: int | None,
    seeds: int,
    fresh: bool,
    threads: int | None,
    address: str | None,
    slots: int | None,
) -> None:
    """Train every step of RECIPE, write its texts and score them.

    Like `mmgen run`, but with the steps of all seeds at the same time, each after the step from which it starts."""
    check_installed()
    from mmgen.commands import quiet
    from mmgen.progress import Bars
    from mmgen.recipe.load import load
    from mmgen.registry import installed

    sets = (*sets, *([f"seed={seed}"] if seed is not None else []))
    loaded, layers = load(recipe, installed(), profile, sets)
    loaded.check_steps(steps)
    quiet()
    from mmgen.runs.run import run as run_recipe

    from .steps import AUTO_THREADS, Seeds, run_seed

    work = Seeds(Path.cwd(), recipe, profile, sets, steps, fresh, threads)
    numbers = range(loaded.seed, loaded.seed + seeds)
    with engine(address, slots, threads or 1) as cluster:
        tasks = {cluster.submit(run_seed, work, number, cluster, waits=True): f"seed {number}" for number in numbers}
        cluster.run_all(tasks, loaded.name, "seeds", "")
    for number in numbers:  # everything is done; the tables now have all seeds
        run_recipe(
            loaded.model_copy(update={"seed": number}),
            only=steps,
            progress=Bars(),
            threads=threads or AUTO_THREADS,
            layers=layers,
        )
