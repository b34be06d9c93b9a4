"""Pictures, captions and other inputs in, texts out: a finished run is asked about what it has never seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..decoding import Decoding
from ..errors import RecipeError, RunError
from ..parts import FailedImage
from ..recipe.tables import Recipe
from ..registry import installed
from ..storage.run_folder import RunFolder
from ..tensors import Generation
from .answers import answers_file
from .asker import fields, lacking
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


def load(path: str | Path, queries: Iterable[Query], step: str | None = None, sets: Sequence[str] = ()) -> Run:
    """The run with the weights of `step`; or else of the last of those steps that read the most of what every query
    gives. `sets`: see `load_run`. Raises RunError and DataError, naming the input that is missing."""
    queries = list(queries)
    folder = RunFolder(Path(path))
    recipe = folder.recipe(installed())
    given = [fields(recipe, query) for query in queries]
    return load_run(path, step or _chosen(recipe, folder, queries, given), sets=sets)


def _chosen(
    recipe: Recipe, folder: RunFolder, queries: Sequence[Query], given: Sequence[Mapping[str, Any]]
) -> str | None:
    """The step for these queries; None where no step has been learnt, which is told elsewhere. Raises RunError."""
    learnt = [name for name in recipe.steps if folder.finished(name, "weights.safetensors")]
    evaluated = [name for name in learnt if recipe.steps[name].evaluate] or learnt
    missing = {
        name: [
            (query.where, fields_[0])
            for query, each in zip(queries, given, strict=True)
            if (fields_ := lacking(recipe, recipe.steps[name].inputs, each))
        ]
        for name in evaluated
    }
    fitting = [name for name in evaluated if not missing[name]]
    if fitting or not learnt:
        most = max((len(recipe.steps[name].inputs) for name in fitting), default=0)
        return next((name for name in reversed(fitting) if len(recipe.steps[name].inputs) == most), None)
    name = min(reversed(evaluated), key=lambda name: len({what for _, what in missing[name]}))
    where, what = missing[name][0]
    some = f"; {where} has none" if len(missing[name]) < len(queries) else ""
    raise RunError(
        f"{folder.path}: {what} is missing: the step '{name}' reads {' and '.join(recipe.steps[name].inputs)}{some}; "
        f'give it with --input {what}=VALUE, or as "{what}" in a line of a JSONL file'
    )


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
        raise RecipeError(f"--n {n}: {error.errors()[0]['msg'].removeprefix('Value error, ')}") from None


def as_json(query: Query, outcome: list[Generation] | FailedImage) -> Mapping[str, Any]:
    if isinstance(outcome, FailedImage):
        return {"id": query.name, "error": outcome.reason}
    return {"id": query.name, "questions": [{"text": text.text, "score": round(text.score, 4)} for text in outcome]}
