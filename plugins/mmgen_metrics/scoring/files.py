"""Reads predictions and references for `mmgen score` (COCO, VQA, JSON lines, a recipe's data) and matches their ids.

The formats: COCO's results and captions, VQA's questions, JSONL, JSON, mmgen's own files, and the data set of a recipe.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mmgen.data.datasets import build_split
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.files import image_key
from mmgen.reading.results import ResultFiles
from mmgen.reading.text import join_names, json_lines, read_text
from mmgen.recipe.load import load
from mmgen.registry import Registry
from mmgen.scoring.intervals import names_of
from mmgen.storage.run_folder import RunFolder
from mmgen.storage.scored_examples import ScoredExamples

ID_KEYS = ("image_id", "id", "image", "question_id")
TEXT_KEYS = ("questions", "predictions", "texts", "captions", "text", "prediction", "question", "caption")
REFERENCE_KEYS = ("references", "targets", *TEXT_KEYS)

Predictions = Mapping[str, Sequence[Any]]  # id -> texts, best first; or the value of one prediction


def read_predictions(
    path: Path,
    kinds: Collection[str] = ("text",),
    form: ResultFiles | None = None,
    examples: Sequence[Example] = (),
) -> dict[str, list[Any]]:
    """Read texts by id; several rows with one id are several texts. Also reads values of other `kinds` of prediction.
    Raises DataError.

    form      reader of files that are not JSON lines (mmgen's own format)
    examples  the examples of the predictions
    """
    if form and ".jsonl" not in path.suffixes:
        return {example_id: [value] for example_id, value in form.read(path, examples).items()}
    return _read(path, TEXT_KEYS, valued={*kinds} != {"text"})


def read_references(
    path: Path,
    registry: Registry,
    profile: str | None = None,
    split: str | None = None,
    step: str | None = None,
) -> list[Example]:
    """References from a file, or the data set of a recipe or of a run's folder. Raises DataError and RecipeError.

    step  of the recipe: the data that this step is scored on, by default the recipe's own
    """
    if path.is_dir() or path.suffix == ".toml":
        recipe = RunFolder(path).recipe(registry) if path.is_dir() else load(path, registry, profile)[0]
        recipe.check_steps([step] if step else [])
        config = (recipe.scored_data(step) if step else None) or recipe.data
        if path.is_dir() and split is None:
            dataset = ScoredExamples(recipe, path).dataset_of(step or "")
        else:
            dataset = build_split(config, split)
        return [*dataset.split(split or config.test_split)]
    if profile or split or step:
        raise DataError(f"{path}: is a file of references; --profile, --split and --step are for a recipe or a run")
    return [Example(example_id, {}, tuple(texts)) for example_id, texts in _read(path, REFERENCE_KEYS).items()]


def _read(path: Path, keys: Sequence[str], valued: bool = False) -> dict[str, list[Any]]:
    """The texts in a file by id; `valued`: or values of predictions."""
    by_id: dict[str, list[Any]] = {}
    for place, row in _read_rows(path):
        if "error" not in row:  # `mmgen generate` lists unreadable pictures
            values = [row["value"]] if valued and "value" in row else _texts_of_row(row, keys, place)
            by_id.setdefault(_example_id(row, place), []).extend(values)
    if not by_id:
        raise DataError(f"{path}: contains no texts")
    return by_id


def pair(
    predictions: Predictions, references: Sequence[Example], source: Path, partial: bool = False
) -> list[tuple[Example, Sequence[str]]]:
    """Match examples with their predictions, by the example's id, its group or its image. Raises DataError for
    predictions without references and references without predictions, unless `partial`."""
    pairs, missing, unmatched = [], [], dict.fromkeys(predictions)
    for example in references:
        name = next((name for name in (example.id, *names_of(example)) if name in predictions), None)
        if name is None:
            missing.append(example.id)
        else:
            pairs.append((example, predictions[name]))
            unmatched.pop(name, None)
    if not pairs:
        raise DataError(f"{source}: no id ({join_names(predictions)}) is among the references ({join_names(missing)})")
    if (unmatched or missing) and not partial:
        counts = [f"{len(unmatched)} predictions have no references ({join_names(unmatched)})"] if unmatched else []
        counts += [f"{len(missing)} references have no prediction ({join_names(missing)})"] if missing else []
        raise DataError(f"{source}: {'; '.join(counts)}; --partial scores the {len(pairs)} that have both")
    return pairs


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) of a JSON file or of JSON lines, also gzipped. In mmgen's generations, a line is the list of all
    texts of an example."""
    try:
        entries = [(f"{path}, entry {n}", row) for n, row in enumerate(_rows_of_json(json.loads(read_text(path))), 1)]
    except (ValueError, RecursionError):
        entries = [(f"{path}:{number}", row) for number, row in json_lines(path)]
    for place, entry in entries:
        for row in entry if isinstance(entry, list) else [entry]:
            if not isinstance(row, dict):
                raise DataError(f'{place}: expected {{"id": ..., "text": ...}} but got {json.dumps(row)[:40]}')
            yield place, row


def _rows_of_json(content: Any) -> Sequence[Any]:
    """The rows of a JSON file: of a list, of COCO's or VQA's object with such a list, of {id: texts}, or one row."""
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]
    if content.keys() & {*ID_KEYS}:
        return [content]
    for name in ("annotations", "questions"):
        if isinstance(content.get(name), list):
            return content[name]
    return [{"id": example_id, "texts": texts} for example_id, texts in content.items()]


def _key(row: Mapping[str, Any], names: Sequence[str], place: str, noun: str) -> str:
    """The first of these names that the row has."""
    for name in names:
        if row.get(name) is not None:
            return name
    raise DataError(f"{place}: no {noun}; give one of {', '.join(names)}; the keys are {join_names(row)}")


def _example_id(row: Mapping[str, Any], place: str) -> str:
    """The id in a row: the image's key if it is the path of an image; any other id unchanged, even with a slash."""
    name = _key(row, ID_KEYS, place, "id")
    value = row[name]
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise DataError(f'{place}: "{name}" must be a string or an integer, not {json.dumps(value)[:40]}')
    key = image_key(str(value))
    return str(value) if key == str(value).rpartition("/")[2] else key


def _texts_of_row(row: Mapping[str, Any], names: Sequence[str], place: str) -> list[str]:
    name = _key(row, names, place, "text")
    values = row[name] if isinstance(row[name], list) else [row[name]]
    texts: list[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: {name} must be a string or a list of strings, not {json.dumps(row[name])[:40]}")
    return texts
