"""The commands that query a run: generate, predict, likelihood, fill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import FILE, PATH, goes_on, repeated, run_argument, shard_option, together
from ..decoding import MOST_TEXTS
from ..errors import MmgenError, RunError
from ..progress import Bars, Progress, tell

if TYPE_CHECKING:
    from ..decoding import DecodingConfig
    from ..inference.predictor import Predictor, Task
    from ..inference.query import Query

SHOWN = 5  # labels, choices or boxes of a prediction that the terminal shows

out_options = together(
    click.option("--out", type=FILE, help="Write the answers to this file, as JSONL."),
    goes_on("answers in --out are kept; run the same command again to continue"),
)
query_options = together(
    run_argument,
    click.argument("sources", nargs=-1, type=PATH),
    repeated(
        "--input",
        "pairs",
        "NAME=VALUE",
        "The value of one input: a text, the path of a picture, or a key of the feature store; several values of one "
        "input for a query about several pictures together.",
    ),
    click.option("--caption", help="Shorthand for --input caption=TEXT."),
    repeated(
        "--set",
        "sets",
        "A.B=VALUE",
        "Override a key of decoding (decoding.num_beams=4), the extractor of an input "
        "(inputs.image.extractor.type=roi), or, for --as, a key of the data (data.NAME=VALUE).",
    ),
    repeated(
        "--step",
        "steps",
        "NAME",
        "The step whose weights to use; by default the best one that reads the given inputs. For --as all of them, "
        "else the last.",
    ),
    out_options,
    shard_option,
)


@click.command()
@query_options
@click.option(
    "--n",
    type=click.IntRange(1, MOST_TEXTS),
    help="Number of different texts per query; by default as [decoding] says.",
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    help="Of a decoding that samples: the same seed gives a query the same texts; by default drawn, and said.",
)
def generate(**options: Any) -> None:
    """Generate texts for your own pictures and texts.

    SOURCES are images, folders of images, or JSONL files whose fields are inputs of the model in the run folder RUN.
    --input also gives inputs: prompt=TEXT, which may be repeated, is what a text is to fit, such as 'answer: red'."""
    _answer(writes=True, **options)


@click.command()
@query_options
@click.option(
    "--as",
    "form",
    help="Predict for a split of the data, and write the result file of a task to --out; the name of the format.",
)
@click.option(
    "--data",
    type=PATH,
    metavar="RECIPE",
    help="For an export, which has no data: the recipe whose data to use, with its default profile.",
)
@click.option("--split", help="With --as: the split; by default the split on which the step is scored.")
def predict(form: str | None, data: Path | None, split: str | None, **options: Any) -> None:
    """Predict labels, choices, regions or boxes for your own inputs.

    SOURCES are images, folders of images, or JSONL files whose fields are inputs of the model in the run folder RUN.
    --input also gives inputs.

    With --as, predict for a full split of RUN's data, or for an export of --data RECIPE, and write the result file that
    the task's evaluation reads.
    """
    if not form:
        if data or split:
            raise MmgenError("--data and --split require --as")
        _answer(**options)
        return
    out = options["out"]
    if out is None or any(options[name] for name in ("sources", "pairs", "caption", "shard")):
        raise MmgenError(f"--as {form}: writes --out FILE for a full split; leave out pictures, --input and --shard")
    from ..files import write_text
    from ..inference.result_file import result_file

    write_text(out, result_file(options["run"], form, options["steps"], split, options["sets"], data, Bars()))
    tell(f"{out}: written")


@click.command()
@query_options
def likelihood(**options: Any) -> None:
    """Say how probable given texts are.

    SOURCES are JSONL files whose lines have the inputs of a step of the run folder RUN, and "text" or a list of
    "texts". The answers have the log-probability of each text, of its tokens and of its words."""
    _answer(writes=True, measures=True, **options)


@click.command()
@query_options
@click.option("--text", required=True, help="A text with [MASK] for each blank, which is one word of the vocabulary.")
@click.option("--top", default=5, show_default=True, type=click.IntRange(1, 1000), help="Number of words and fillings.")
def fill(text: str, top: int, **options: Any) -> None:
    """Fill the blanks of a text: the most probable words of each, and the most probable fillings of all.

    SOURCES and --input are as for `mmgen generate`; the text is filled for each. A generator that writes from left to
    right reads what stands before a blank, one that writes in any order all other words: the last line says which."""
    _answer(writes=True, blanks=(text, top), **options)


def _answer(
    pairs: Sequence[str],
    run: Path,
    sources: Sequence[Path],
    caption: str | None,
    sets: Sequence[str],
    steps: Sequence[str],
    out: Path | None,
    shard: str | None,
    n: int | None = None,
    seed: int | None = None,
    writes: bool = False,
    measures: bool = False,
    blanks: tuple[str, int] | None = None,
) -> None:
    """Answer queries: write `n` texts for each, drawn with `seed`; measure the texts of each; fill the blanks of a text
    with so many words; or predict."""
    pairs = [*pairs, *([f"caption={caption}"] if caption else [])]
    if not sources and not pairs:
        raise MmgenError("no input; give a picture, a folder, a JSONL file, --input NAME=VALUE, or --caption")
    from ..features.extract import Shard

    part = Shard.parse(shard or "1/1")
    from ..files import refuse_overwriting
    from ..inference.answers import shard_path
    from ..inference.load import load_for
    from ..inference.predictor import Predictor
    from ..inference.query import named_values, read_sources, with_texts_of_line
    from ..recipe.layers import setting_table

    refuse_overwriting("--out", out, sources)
    queries = read_sources(sources, named_values(pairs))
    if measures:
        queries = [with_texts_of_line(query) for query in queries]
    predictor = load_for(run, queries, steps[-1] if steps else None, sets, writes)
    decoding: DecodingConfig | Task | None = Predictor.measure if measures else None
    if blanks:
        queries = [replace(query, texts=blanks[:1]) for query in queries]
        decoding = partial(Predictor.fill_blanks, top=blanks[1])
    elif writes and not measures:
        keys = [key for setting in sets for key in setting_table(setting)[0].get("decoding", {})]
        decoding = predictor.decoding(n, {key: getattr(predictor.recipe.decoding, key) for key in keys})
    first, last = (len(queries) * number // part.count for number in (part.number - 1, part.number))
    out = shard_path(out, part.number, part.count) if shard and out else out
    answer_all(predictor, queries[first:last], out, decoding, seed)


def answer_all(
    predictor: Predictor,
    queries: Sequence[Query],
    out: Path | None = None,
    decoding: DecodingConfig | Task | None = None,
    seed: int | None = None,
) -> None:
    """Write the answer to each query as a line of JSON to a file, which goes on after a stop; or else print it, with
    its remarks. Then print how many queries could not be read, the step, and the seed of texts that are sampled.
    `decoding`: see `Predictor.answers`. Raises MmgenError if the only query, or every query, cannot be read."""
    from ..inference.answers import AnswersFile, lines_of

    file, answers = AnswersFile(out) if out else None, list[Mapping[str, Any]]()
    if file and file.done:
        if file.done - {query.id for query in queries}:
            raise RunError(f"{file.partial}: has answers to other queries; delete it")
        tell(f"{file.partial}: {len(file.done)} answers are kept; to start over, delete this file", err=True)
        queries = [query for query in queries if query.id not in file.done]
    doing, done = ("writing", "written") if predictor.kind == "text" else ("predicting", "predicted")
    if callable(decoding):
        doing, done = "reading", "read"
    with (Bars() if file else Progress()).task(f"{predictor.step}: {doing}", len(queries), "examples") as advance:
        for query, answer in zip(queries, predictor.answers(queries, decoding, seed=seed), strict=True):
            if answer.error and len(queries) == 1 and not file:
                raise MmgenError(answer.error)
            answers.append(answer.as_json())
            if file:
                file.add(answers[-1])
            else:
                tell("\n    ".join([answer.id, *_lines(answers[-1])]))
                for remark in answer.remarks:
                    tell(f"{query.where}: {remark}", err=True)
            advance()
    if any("blanks" in answer for answer in answers):
        tell(f"words of a blank follow from the inputs and {predictor.model.generator.blanks_read}", err=True)
    if file:
        file.finish()
        answers = [*lines_of(file.path)]
        tell(f"{out}: {len(answers)} answers, {sum('remarks' in answer for answer in answers)} with remarks")
    failed = sum("error" in answer for answer in answers)
    if failed:
        tell(f"{failed} of {len(answers)} could not be answered; each answer has the reason", err=True)
    chosen = f"{predictor.chosen}; it" if predictor.chosen else "which"
    tell(f"{done} by step '{predictor.step}', {chosen} reads {predictor.names.reads}", err=True)
    for drawn in dict.fromkeys(answer["seed"] for answer in answers if "seed" in answer):
        tell(f"sampled with seed {drawn}; --seed {drawn} writes the same texts again", err=True)
    if answers and failed == len(answers):
        raise MmgenError("could not read any of the input")


def _lines(answer: Mapping[str, Any]) -> list[str]:
    """The texts of an answer, its most probable labels or choices, or its value."""
    from ..cards import as_json

    if "error" in answer:
        return [f"skipped: {answer['error']}"]
    if "blanks" in answer:
        blanks = [", ".join(f"{word} {share:.1%}" for word, share in words) for words in answer["blanks"]]
        return [*blanks, *(f"{text['score']:6.2f}  {text['text']}" for text in answer["texts"])]
    if "texts" in answer and "words" in answer["texts"][0]:
        lines = []
        for text in answer["texts"]:
            words = "  ".join(f"{word} {value:.2f}" for word, value in text["words"])
            lines.append(f"{text['log_probability']:7.2f}  {text['text']}  ({words})  {text.get('kind', '')}".rstrip())
        return lines
    if "texts" in answer:
        return [
            f"{text['score']:6.2f}{' (confidence)' * ('score_kind' in text)}  {text['text']}"
            + (f"  ({text['prompt']})" if "prompt" in text else "")
            for text in answer["texts"]
        ]
    value = answer["value"]
    shares = value.get("probabilities", []) if isinstance(value, Mapping) else []
    if isinstance(shares, list):
        shares = dict(zip(answer.get("choices") or range(len(shares)), shares, strict=True))
    ranked = sorted(shares, key=shares.__getitem__, reverse=True)[:SHOWN]
    return [f"{shares[name]:6.1%}  {name}" for name in ranked] or [f"{answer['score']:6.1%}  {as_json(value)}"]
