"""Predictions and references out of the files that people have: COCO's results and captions, VQA's questions, JSONL,
JSON, CSV, TSV, what mmgen itself writes, and a recipe's own data set."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..configs import DatasetConfig
from ..data.datasets import build_split
from ..errors import DataError
from ..files import image_key, read_bytes
from ..parts import Dataset
from ..reading.results import ResultFiles
from ..reading.tables import BETWEEN, is_table, rows
from ..reading.text import LONGEST
from ..recipe.load import load
from ..recipe.tables import Recipe
from ..registry import Registry
from ..storage.kept_examples import ScoredExamples, dataset_of
from ..storage.run_folder import RunFolder
from ..tensors import Example

Per = Literal["image", "question"]
READ = "give JSON or JSONL, or a table whose name ends in .csv or .tsv"
IDS = {"image": ("image_id", "id", "image", "question_id"), "question": ("question_id", "id", "image_id", "image")}
WRITTEN = ("questions", "predictions", "texts", "captions", "text", "prediction", "question", "caption")
ASKED = ("references", "questions", "targets", "captions", "texts", "reference", "question", "text", "caption")

KNOWN = {*IDS["image"], *WRITTEN, *ASKED}

Predictions = Mapping[str, Sequence[Any]]  # id -> texts, best first; or the value of one prediction that is no text


@dataclass(frozen=True)
class References:
    """What texts are judged by. `also`: other names of an example (its image's key) -> its id. `seen`: what was learnt
    from."""

    examples: tuple[Example, ...]
    also: Mapping[str, str] = field(default_factory=dict)
    seen: frozenset[str] | None = None


def read_predictions(
    path: Path,
    per: Per = "image",
    kinds: Collection[str] = ("text",),
    form: ResultFiles | None = None,
    examples: Sequence[Example] = (),
) -> dict[str, list[Any]]:
    """Texts by id, several rows of one id are several texts; where predictions may be of other `kinds`, also their
    values. Raises DataError.

    form      how files are read that are not JSON lines, which are mmgen's own
    examples  what they are about
    """
    predictions: dict[str, list[Any]] = {}
    if form and ".jsonl" not in path.suffixes:
        predictions = {example_id: [value] for example_id, value in form.read(path, examples).items()}
    else:
        for place, row in _rows(path):
            if "error" not in row:  # `mmgen generate` lists the pictures that it could not read
                valued = "value" in row and {*kinds} != {"text"}
                values = [row["value"]] if valued else _texts(row, WRITTEN, place)
                predictions.setdefault(_id(row, per, place), []).extend(values)
    if not predictions:
        raise DataError(f"{path}: there are no predictions in it")
    return predictions


def read_references(
    path: Path,
    registry: Registry,
    per: Per = "image",
    profile: str | None = None,
    split: str | None = None,
    step: str | None = None,
    form: ResultFiles | None = None,
) -> References:
    """References from a file, or the data set of a recipe or of a run's folder. Raises DataError and RecipeError.

    per   "image": all references of an id together; "question": every reference is an example of its own
    step  of the recipe: the data that this step is scored on, by default the recipe's own
    form  how a file is read whose predictions are no texts
    """
    if path.is_dir():
        recipe = RunFolder(path).recipe(registry)
        config = _scored(recipe, step)
        if split is not None:
            dataset = _of_split(config, split, form)
        else:
            dataset = ScoredExamples(recipe, path).dataset_of(step) if step else dataset_of(recipe, path)
        references = _from_data(config, dataset, split, form)
    elif path.suffix == ".toml":
        config = _scored(load(path, registry, profile)[0], step)
        references = _from_data(config, _of_split(config, split, form), split, form)
    elif form:
        references = References(tuple(form.read_references(path)))
    else:
        references = _from_file(path, per)
    return one_by_one(references) if per == "question" else references


def one_by_one(references: References) -> References:
    """Every reference an example of its own, under its example's id and a number where there are several."""
    examples, also = [], dict(references.also)
    for example in references.examples:
        for number, text in enumerate(example.targets, 1):
            example_id = example.id if len(example.targets) == 1 else f"{example.id}#{number}"
            examples.append(Example(example_id, example.inputs, (text,), {**example.facts, "group": example.id}))
    return References(tuple(examples), also, references.seen)


def _scored(recipe: Recipe, step: str | None) -> DatasetConfig:
    """The data that a step is scored on, or the recipe's own. Raises DataError."""
    if step is None:
        return recipe.data
    if step not in recipe.steps:
        raise DataError(f"--step {step}: {recipe.name} has no such step; there are: {', '.join(recipe.steps)}")
    return recipe.own_data(step) or recipe.data


def _of_split(config: DatasetConfig, split: str | None, form: ResultFiles | None) -> Dataset:
    """The data set, which need have no files but those of the split, and for texts those of what is learnt from."""
    if form:
        return build_split(config, split)
    return config.model_copy(update={"evaluate": split or config.evaluate}).build()


def _from_data(config: DatasetConfig, dataset: Dataset, split: str | None, form: ResultFiles | None) -> References:
    examples = tuple(dataset.split(split or config.evaluate))
    if form:
        return References(examples)
    keys: dict[str, list[str]] = {}
    for example in examples:
        for value in example.inputs.values():
            if isinstance(value, str):
                keys.setdefault(value, []).append(example.id)
    learnt = dataset.split(config.train) if config.train in dataset.splits() else None
    seen = None if learnt is None else frozenset(text for example in learnt for text in example.targets)
    return References(examples, {key: ids[0] for key, ids in keys.items() if len(ids) == 1}, seen)


def _from_file(path: Path, per: Per) -> References:
    texts_by_id: dict[str, list[str]] = {}
    images: dict[str, str] = {}
    for place, row in _rows(path):
        example_id = _id(row, per, place)
        texts_by_id.setdefault(example_id, []).extend(_texts(row, ASKED, place))
        if per == "question":
            images[example_id] = _id(row, "image", place)
    if not texts_by_id:
        raise DataError(f"{path}: there are no references in it")
    facts = {example_id: {"image": images[example_id]} if example_id in images else {} for example_id in texts_by_id}
    return References(
        tuple(Example(example_id, {}, tuple(texts), facts[example_id]) for example_id, texts in texts_by_id.items())
    )


def pair(
    predictions: Predictions, references: References, source: Path, partial: bool = False
) -> list[tuple[Example, Sequence[str]]]:
    """Every example with the texts for it. A text may go by the example's id, another name of it, or its group's or
    image's. Raises DataError for texts without references and references without texts, unless `partial`."""
    names = {references.also.get(prediction_id, prediction_id): texts for prediction_id, texts in predictions.items()}
    pairs, used, missing = [], set(), []
    for example in references.examples:
        places = (example.id, example.facts.get("group"), example.facts.get("image"))
        matched_id = next((place for place in places if place in names), None)
        if matched_id is None:
            missing.append(example.id)
        else:
            used.add(matched_id)
            pairs.append((example, names[matched_id]))
    strange = [prediction_id for prediction_id in names if prediction_id not in used]
    if not pairs:
        raise DataError(f"{source}: none of its ids ({_some(list(names))}) is in the references ({_some(missing)})")
    if (strange or missing) and not partial:
        counts = [f"{len(strange)} of its ids have no references ({_some(strange)})"] if strange else []
        counts += [f"{len(missing)} references have no prediction ({_some(missing)})"] if missing else []
        raise DataError(f"{source}: {'; '.join(counts)}; --partial scores the {len(pairs)} that have both")
    return pairs


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(where it stands, row) of a file of JSON, of JSON lines, or of a table; each may be gzipped."""
    if is_table(path):
        yield from _of_table(path)
        return
    try:
        text = read_bytes(path, "predictions or references").decode("utf-8-sig")
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        reason = (
            "no such file"
            if isinstance(error, FileNotFoundError)
            else f"cannot be read: {getattr(error, 'strerror', None) or error}"
        )
        raise DataError(f"{path}: {reason}") from None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield from _flat(_line(line, f"{path}:{number}"), f"{path}:{number}")
        return
    content = _unwrapped(content)
    for number, row in enumerate(content, 1):
        yield from _flat(row, f"{path}, entry {number}")


def _of_table(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    header: Sequence[str] = ()
    for line, cells in rows(path):
        if not header:
            header = cells
            if twice := [name for name in header if name in KNOWN and header.count(name) > 1]:
                raise DataError(f"{path}:{line}: the column '{twice[0]}' is there several times; keep one of them")
        else:
            yield f"{path}:{line}", {name: _cell(name, cell) for name, cell in zip(header, cells, strict=True)}


def _cell(name: str, cell: str) -> str | list[str]:
    """A cell, or where it may hold texts, all of them."""
    if name in (*WRITTEN, *ASKED):
        return [text.strip() for text in cell.split(BETWEEN)]
    return cell.strip()


def _unwrapped(content: Any) -> Sequence[Any]:
    """The rows of a whole JSON file: a list, COCO's or VQA's table around one, {id: texts}, or a single row."""
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]
    for name in ("annotations", "questions"):
        rows = content.get(name)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "text" not in rows[0]:
            return rows
    if any(name in content for name in IDS["image"]):
        return [content]
    return [{"id": example_id, "texts": texts} for example_id, texts in content.items()]


def _line(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not JSON: {error}{f'; {READ}' * place.endswith(':1')}") from None


def _flat(row: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A row, or the rows of a list (mmgen's generations: all texts of one example in a line)."""
    for item in row if isinstance(row, list) else [row]:
        if not isinstance(item, dict):
            raise DataError(f'{place}: give an object, {{"id": ..., "text": ...}}, not {json.dumps(item)[:40]}')
        yield place, item


def _id(row: Mapping[str, Any], per: Per, place: str) -> str:
    for name in IDS[per]:
        value = row.get(name)
        if value == "":
            raise DataError(f'{place}: "{name}" is empty')
        if isinstance(value, str | int) and not isinstance(value, bool):
            return _key(str(value))
        if value is not None:
            raise DataError(f'{place}: "{name}" must be a text or a whole number, not {json.dumps(value)[:40]}')
    raise DataError(f"{place}: no id; give one of {', '.join(IDS[per])}; it has {_keys(row)}")


def _key(example_id: str) -> str:
    """An image's key where the id is a path of one; any other id as it is, a slash in it too."""
    name = image_key(example_id)
    return example_id if name == example_id.rpartition("/")[2] else name


def _keys(row: Mapping[str, Any]) -> str:
    return ", ".join(key if key.isprintable() else repr(key) for key in row) or "nothing"


def _texts(row: Mapping[str, Any], names: Sequence[str], place: str) -> list[str]:
    name = next((name for name in names if name in row), None)
    if name is None:
        raise DataError(f"{place}: no text; give one of {', '.join(names)}; it has {_keys(row)}")
    values = row[name] if isinstance(row[name], list) else [row[name]]
    texts: list[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: {name}: give a text, or a list of them, not {json.dumps(row[name])[:40]}")
    if (longest := max(map(len, texts))) > LONGEST:
        raise DataError(f"{place}: {name} has {longest:,} characters; the limit is {LONGEST:,}; the file is damaged")
    return texts
