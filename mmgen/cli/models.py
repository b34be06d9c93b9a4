"""Commands about finished models: export to a folder, push to the hub, info."""

from __future__ import annotations

from pathlib import Path

import click

from ..commands import model_argument, quiet
from ..errors import MmgenError
from ..progress import tell


@click.command("export")
@model_argument
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--step", help="The step to export; by default the best one by the table's first metric, or default_step."
)
@click.option(
    "--half",
    is_flag=True,
    help="Write the weights as bfloat16: half the size.",
)
@click.option(
    "--without-extractor",
    is_flag=True,
    help="Leave out the network that computes features of pictures; the model then reads stored features only.",
)
@click.option("--transformers", is_flag=True, help="Write the encoder for transformers too: FOLDER/backbone.")
def export(where: str, folder: Path, step: str | None, half: bool, without_extractor: bool, transformers: bool) -> None:
    """Write one step of the run (or export) WHERE into FOLDER, with everything that it needs: weights, tokenizer,
    feature network, settings and a model card. `mmgen generate`, `mmgen predict` and `mmgen.load` take the folder."""
    quiet()
    from ..inference.load import load

    predictor = load(where, step)
    path = predictor.save(folder, half=half, extractor=not without_extractor, transformers=transformers)
    files = [file for file in path.rglob("*") if file.is_file()]
    tell(f"{path}: step '{predictor.step}', {len(files)} files, {sum(file.stat().st_size for file in files):,} bytes")
    tell(f'use it: mmgen {"generate" if predictor.kind == "text" else "predict"} {path} ..., or mmgen.load("{path}")')


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.argument("where")
@click.option("--private", is_flag=True, help="Create the repository as a private one.")
@click.option("--revision", help="A branch to push to, instead of the main branch; created if it is missing.")
@click.option("--yes", is_flag=True, help="Upload without asking.")
def push(folder: Path, where: str, private: bool, revision: str | None, yes: bool) -> None:
    """Upload the export in FOLDER to the Hugging Face Hub; WHERE is hf:user/name. The token is that of `hf auth login`,
    or of the environment variable HF_TOKEN."""
    quiet()
    from ..inference.hub import check_export, hub_name
    from ..inference.hub import push as upload

    check_export(folder)
    if revision and hub_name(where)[1]:
        raise MmgenError(f"--revision {revision}: {where} names a revision already; use one of the two")
    target = f"{where}@{revision}" if revision else where
    if not yes and not click.confirm(f"upload {folder} to {target}?", default=True):
        raise MmgenError("not uploaded")
    tell(upload(folder, target, private=private))


@click.command()
@model_argument
def info(where: str) -> None:
    """Print which step of the model WHERE (a run, an export or hf:user/name) answers, and what it reads and gives."""
    quiet()
    from ..inference.load import load

    tell(repr(load(where)))
