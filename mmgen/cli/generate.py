"""The command `mmgen generate`: generate texts for pictures and texts of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ..commands import jsonl_option, quiet, shard_option, writing_options
from ..errors import MmgenError
from ..progress import tell
from .answer_output import Output, answer_all


@click.command()
@writing_options
@click.option(
    "--prompt",
    "prompts",
    multiple=True,
    metavar="TEXT",
    help="Shorthand for --input prompt=TEXT: what a text is to fit, such as 'answer: red'. May be repeated; each "
    "prompt has its own texts.",
)
@click.option(
    "--avoid",
    "avoided",
    multiple=True,
    metavar="TEXT",
    help="Shorthand for --input avoid=TEXT: a text that the new texts are to differ from. May be repeated.",
)
@jsonl_option
@shard_option
def generate(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    prompts: tuple[str, ...],
    avoided: tuple[str, ...],
    n: int | None,
    sets: tuple[str, ...],
    step: str | None,
    seed: int | None,
    out: Path | None,
    shard: str | None,
) -> None:
    """Generate texts with the model in the run folder RUN. SOURCES are images, folders of images, or JSONL files and
    tables (CSV, TSV) whose fields or columns are inputs. --input also gives inputs."""
    if not sources and not pairs and not caption:
        raise MmgenError("no input; give a picture, a folder, a table, a JSONL file, --input NAME=VALUE, or --caption")
    output = Output.of(_print_texts, out, shard)
    quiet()
    from ..evaluation.collapse import collapsed
    from ..files import refuse_overwriting
    from ..inference.load import load_for
    from ..inference.query import named_values, read_sources
    from ..recipe.layers import setting_table

    shorthands = [*([f"caption={caption}"] if caption else []), *(f"prompt={prompt}" for prompt in prompts)]
    shorthands += [f"avoid={text}" for text in avoided]
    refuse_overwriting("--out", out, sources)
    queries = read_sources(sources, named_values([*shorthands, *pairs]))
    predictor = load_for(run, queries, step, sets)
    keys = [key for setting in sets for key in setting_table(setting)[0].get("decoding", {})]
    options = predictor.decoding(n, {key: getattr(predictor.recipe.decoding, key) for key in keys})
    answers = answer_all(predictor, queries, output, options, seed)
    if remark := collapsed([answer.texts[0].text for answer in answers if answer.texts]):
        tell(remark, err=True)


def _print_texts(line: Mapping[str, Any], kind: str) -> None:
    tell(line["id"])
    if "error" in line:
        tell(f"    skipped: {line['error']}", err=True)
    for text in line.get("texts", []):
        kind = f" ({text['score_kind']})" if "score_kind" in text else ""
        prompt = f"  ({text['prompt']})" if "prompt" in text else ""
        tell(f"    {text['score']:6.2f}{kind}  {text['text']}{prompt}")
