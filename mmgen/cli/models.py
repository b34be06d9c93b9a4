"""Commands about finished models: export to a folder, push to the hub, info, probe."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..commands import PATH, model_argument, repeated, run_argument, steps_option
from ..errors import MmgenError
from ..progress import Bars, tell


@click.command("export")
@model_argument
@click.argument("folder", type=PATH)
@click.option(
    "--step", help="The step to export; by default the best one by the table's first metric, or default_step."
)
@click.option("--half", is_flag=True, help="Write the weights as bfloat16: half the size.")
@click.option(
    "--without-extractor",
    "extractor",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Leave out the network that computes features of pictures; the model then reads stored features only.",
)
@click.option("--transformers", is_flag=True, help="Write the encoder for transformers too: FOLDER/backbone.")
def export(where: str, folder: Path, step: str | None, **options: Any) -> None:
    """Write one step's model as a folder that needs nothing else.

    WHERE is a run or an export. FOLDER gets everything that the step needs: weights, tokenizer, feature network,
    settings and a model card. `mmgen generate`, `mmgen predict` and `mmgen.load` take the folder."""
    from ..inference.load import load

    predictor = load(where, step)
    path = predictor.save(folder, **options)
    tell(f"{path}: step '{predictor.step}'")
    tell(f'use it: mmgen {"generate" if predictor.kind == "text" else "predict"} {path} ..., or mmgen.load("{path}")')


@click.command()
@click.argument("folder", type=PATH)
@click.argument("where")
@click.option("--private", is_flag=True, help="Create the repository as a private one.")
def push(folder: Path, where: str, private: bool) -> None:
    """Upload an exported model to the Hugging Face Hub.

    FOLDER is the export, and WHERE is hf:user/name, or hf:user/name@branch. The token is that of `hf auth login`, or of
    the environment variable HF_TOKEN."""
    from ..inference.hub import push as upload

    tell(upload(folder, where, private=private))


@click.command()
@model_argument
def info(where: str) -> None:
    """Say which step of a model answers, what it reads and gives.

    WHERE is the folder of a run or of an export, or hf:user/name."""
    from ..inference.load import load

    tell(repr(load(where)))


@click.command()
@run_argument
@repeated(
    "--probe", "names", "NAME", "A probe of the recipe, or any installed probe. By default all probes of the recipe."
)
@steps_option
@repeated("--set", "sets", "PROBE.KEY=VALUE", "Set one key of a probe; VALUE as in TOML.")
def probe(run: Path, **options: Any) -> None:
    """Analyse attention and representations inside the model.

    Shows for the trained steps in the run folder RUN what words attend to, how similar the representations of pictures
    and captions are, which attention heads link words to regions. Tables and plots are written into RUN/probes;
    `mmgen report RUN` also shows them."""
    from ..evaluation.probes import text
    from ..runs.probe import probe

    results = probe(run, **options, progress=Bars())
    for name, findings in results.items():
        if isinstance(findings, MmgenError):
            tell(f"\n{name}: {findings}", err=True)
        else:
            tell(f"\n{text(findings)}\n\n{name}: all files are in {run / 'probes' / name}")
    if all(isinstance(findings, MmgenError) for findings in results.values()):
        raise click.exceptions.Exit(1)
