"""Pictures, captions and other inputs in, texts out: a finished run is asked about what it has never seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..decoding import Decoding
from ..errors import DataError, RecipeError, RunError
from ..parts import FailedImage
from ..recipe.messages import mistaken
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..tensors import Generation, Prediction
from .answers import answers_file
from .given import ByInput, by_input, called, inputs_asked, lacking, steps_read, unread
from .load import Run, different, load_run
from .query import Query, named_values, refuse_overwriting, requests

__all__ = [
    "Query",
    "answers_file",
    "as_json",
    "ask",
    "different",
    "load",
    "named_values",
    "options",
    "refuse_overwriting",
    "requests",
]


def load(
    path: str | Path, queries: Iterable[Query], step: str | None = None, sets: Sequence[str] = (), writes: bool = True
) -> Run:
    """The run with the weights of `step`; or else of the last of those steps that read just what every query gives. A
    line of a file that cannot be read is left to the answers. `sets`: see `load_run`. `writes`: whether the step is to
    write texts, or to predict something else. Raises RunError and DataError, naming the input that is missing or not
    read."""
    folder = RunFolder(Path(path))
    recipe = folder.recipe(installed())
    given = _readable(recipe, list(queries))
    if step is None:
        asked = [name for name, own in recipe.steps.items() if own.evaluate and recipe.makes_texts(name) == writes]
        if not asked and not writes:
            raise RunError(f"{path}: no step predicts anything but texts; ask for those with `mmgen generate`")
        step = _chosen(recipe, folder, given, asked)
    return load_run(path, step, sets=sets)


def _readable(recipe: Recipe, queries: Sequence[Query]) -> list[tuple[Query, ByInput]]:
    """Queries and what they give. Raises DataError for one that is no line of a file, and where no line can be read."""
    found, failed = [], None
    for query in queries:
        try:
            if query.problem:
                raise DataError(query.problem)
            found.append((query, by_input(recipe, query)))
        except DataError as error:
            if not query.place:
                raise
            failed = failed or error
    if failed and not found:
        raise failed
    return found


def _chosen(
    recipe: Recipe, folder: RunFolder, given: Sequence[tuple[Query, ByInput]], asked: Sequence[str]
) -> str | None:
    """The step for these queries, of those that may be `asked` where one of them has weights; None where no step has
    any (`load_run` raises then). Raises RunError."""
    learnt = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    evaluated = [name for name in learnt if name in asked] or learnt
    if not learnt:
        return None
    missing, left = {}, {}
    for name in evaluated:
        missing[name] = [(query.where, some[0]) for query, each in given if (some := lacking(recipe, name, each))]
        left[name] = [(query.where, some[0]) for query, each in given if (some := unread(recipe, query, name, each))]
    complete = [name for name in evaluated if not missing[name]]
    fitting = [name for name in complete if not left[name]]
    if fitting:
        return max(reversed(fitting), key=lambda name: _reads(recipe, name))
    if complete:
        name = min(reversed(complete), key=lambda name: len({what for _, what in left[name]}))
        where, what = left[name][0]
        raise RunError(
            f"{folder.path}: {where}: {called(what)} is not read by the step '{name}'; give all that a step reads and "
            f"nothing else: {steps_read(recipe, evaluated)}"
        )
    name = min(reversed(evaluated), key=lambda name: (len(left[name]), len({what for _, what in missing[name]})))
    where, what = missing[name][0]
    whose = f"; {where} has none" if sum(one == what for _, one in missing[name]) < len(given) else ""
    raise RunError(
        f"{folder.path}: {what} is missing: the step '{name}' reads {' and '.join(recipe.steps[name].inputs)}{whose}; "
        f'give it with --input {what}=VALUE, or as "{what}" in a line of a JSONL file'
    )


def _reads(recipe: Recipe, step: str) -> tuple[int, int]:
    """How many inputs a step wants to be given; of two alike, the one that fills none of its own comes first."""
    asked = len(inputs_asked(recipe, step))
    return asked, asked - len(recipe.steps[step].inputs)


def ask(
    run: Run, queries: Iterable[Query], options: Decoding, at_once: int = 1
) -> Iterator[tuple[Query, list[Generation] | FailedImage]]:
    """Texts for every query; see `Asker.answers`."""
    return run.asker.answers(queries, options, at_once)


def options(run: Run, n: int | None, sets: Sequence[str]) -> Decoding:
    """How texts are searched for: `different(n)`, or where `sets` name options of decoding the run's own with these
    laid over them. Raises RecipeError."""
    if not any(setting.startswith("decoding") for setting in sets):
        return different(n or 1)
    whole = run.recipe.decoding.model_dump()
    try:
        return Decoding(**{**whole, **({"num_return_sequences": n} if n is not None else {})})
    except ValidationError as error:
        raise RecipeError(f"--n {n}: {mistaken(Decoding, error.errors()[0])[1]}") from None


def as_json(query: Query, outcome: list[Generation] | Prediction | FailedImage) -> Mapping[str, Any]:
    if isinstance(outcome, Prediction):
        return {"id": query.name, "value": outcome.value, "score": round(outcome.score, 4)}
    if isinstance(outcome, FailedImage):
        return {"id": query.name, "error": outcome.reason}
    return {"id": query.name, "texts": [{"text": text.text, "score": round(text.score, 4)} for text in outcome]}
