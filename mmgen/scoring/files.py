"""Reads predictions and references for `mmgen score` (COCO, VQA, JSON, CSV, a recipe's data) and matches their ids.

The formats: COCO's results and captions, VQA's questions, JSONL, JSON, CSV, TSV, mmgen's own files, and the data set
of a recipe.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..configs import DatasetConfig
from ..data.datasets import build_split
from ..errors import DataError
from ..examples import Example
from ..files import image_key, json_problem
from ..parts import Dataset
from ..reading.results import ResultFiles
from ..reading.tables import BETWEEN, is_table, rows
from ..reading.text import LONGEST, read_text
from ..recipe.load import load
from ..recipe.tables import Recipe
from ..registry import Registry
from ..storage.run_folder import RunFolder
from ..storage.scored_examples import ScoredExamples, dataset_of

Per = Literal["image", "question"]
FORMATS = "give JSON or JSONL, or a table with a name ending in .csv or .tsv"
ID_KEYS = {"image": ("image_id", "id", "image", "question_id"), "question": ("question_id", "id", "image_id", "image")}
TEXT_KEYS = ("questions", "predictions", "texts", "captions", "text", "prediction", "question", "caption")
REFERENCE_KEYS = ("references", "questions", "targets", "captions", "texts", "reference", "question", "text", "caption")

KNOWN_KEYS = {*ID_KEYS["image"], *TEXT_KEYS, *REFERENCE_KEYS}

Predictions = Mapping[str, Sequence[Any]]  # id -> texts, best first; or the value of one prediction


@dataclass(frozen=True)
class References:
    """Examples with reference texts. `aliases`: other names of an example (its image's key) -> its id. `seen`: training
    texts."""

    examples: tuple[Example, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    seen: frozenset[str] | None = None


def read_predictions(
    path: Path,
    per: Per = "image",
    kinds: Collection[str] = ("text",),
    form: ResultFiles | None = None,
    examples: Sequence[Example] = (),
) -> dict[str, list[Any]]:
    """Read texts by id; several rows with one id are several texts. Also reads values of other `kinds` of prediction.
    Raises DataError.

    form      reader of files that are not JSON lines (mmgen's own format)
    examples  the examples of the predictions
    """
    predictions: dict[str, list[Any]] = {}
    if form and ".jsonl" not in path.suffixes:
        predictions = {example_id: [value] for example_id, value in form.read(path, examples).items()}
    else:
        for place, row in _read_rows(path):
            if "error" not in row:  # `mmgen generate` lists unreadable pictures
                has_value = "value" in row and {*kinds} != {"text"}
                values = [row["value"]] if has_value else _texts_of_row(row, TEXT_KEYS, place)
                predictions.setdefault(_example_id(row, per, place), []).extend(values)
    if not predictions:
        raise DataError(f"{path}: contains no predictions")
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

    per   "image": all references of an id together; "question": every reference is a separate example
    step  of the recipe: the data that this step is scored on, by default the recipe's own
    form  reader of files whose predictions are not texts
    """
    if path.is_dir():
        recipe = RunFolder(path).recipe(registry)
        config = _data_config(recipe, step)
        if split is not None:
            dataset = _build_data_set(config, split, form)
        else:
            dataset = ScoredExamples(recipe, path).dataset_of(step) if step else dataset_of(recipe, path)
        references = _from_data(config, dataset, split, form)
    elif path.suffix == ".toml":
        config = _data_config(load(path, registry, profile)[0], step)
        references = _from_data(config, _build_data_set(config, split, form), split, form)
    elif form:
        references = References(tuple(form.read_references(path)))
    else:
        references = _from_file(path, per)
    return split_references(references) if per == "question" else references


def split_references(references: References) -> References:
    """One example per reference text; several texts of one example get its id with a number (#1, #2, ...)."""
    examples = []
    for example in references.examples:
        for number, text in enumerate(example.targets, 1):
            example_id = example.id if len(example.targets) == 1 else f"{example.id}#{number}"
            examples.append(Example(example_id, example.inputs, (text,), {**example.facts, "group": example.id}))
    return References(tuple(examples), dict(references.aliases), references.seen)


def _data_config(recipe: Recipe, step: str | None) -> DatasetConfig:
    """The config of the data set on which a step is scored; without a step, of the recipe's [data]. Raises
    RecipeError."""
    if step is None:
        return recipe.data
    recipe.check_steps([step])
    return recipe.scored_data(step) or recipe.data


def _build_data_set(config: DatasetConfig, split: str | None, form: ResultFiles | None) -> Dataset:
    """Build the data set, with only the files of the split; for texts also those of the training split."""
    if form:
        return build_split(config, split)
    return config.model_copy(update={"test_split": split or config.test_split}).build()


def _from_data(config: DatasetConfig, dataset: Dataset, split: str | None, form: ResultFiles | None) -> References:
    examples = tuple(dataset.split(split or config.test_split))
    if form:
        return References(examples)
    keys: dict[str, list[str]] = {}
    for example in examples:
        for value in example.inputs.values():
            if isinstance(value, str):
                keys.setdefault(value, []).append(example.id)
    training = dataset.split(config.train_split) if config.train_split in dataset.splits() else None
    seen = None if training is None else frozenset(text for example in training for text in example.targets)
    return References(examples, {key: ids[0] for key, ids in keys.items() if len(ids) == 1}, seen)


def _from_file(path: Path, per: Per) -> References:
    texts_by_id: dict[str, list[str]] = {}
    images: dict[str, str] = {}
    for place, row in _read_rows(path):
        example_id = _example_id(row, per, place)
        texts_by_id.setdefault(example_id, []).extend(_texts_of_row(row, REFERENCE_KEYS, place))
        if per == "question":
            images[example_id] = _example_id(row, "image", place)
    if not texts_by_id:
        raise DataError(f"{path}: contains no references")
    facts = {example_id: {"image": images[example_id]} if example_id in images else {} for example_id in texts_by_id}
    return References(
        tuple(Example(example_id, {}, tuple(texts), facts[example_id]) for example_id, texts in texts_by_id.items())
    )


def pair(
    predictions: Predictions, references: References, source: Path, partial: bool = False
) -> list[tuple[Example, Sequence[str]]]:
    """Match examples with their predictions, by the example's id or alias, its group's or its image's id. Raises
    DataError for predictions without references and references without predictions, unless `partial`."""
    names = {references.aliases.get(key, key): texts for key, texts in predictions.items()}
    pairs, used, missing = [], set(), []
    for example in references.examples:
        places = (example.id, example.facts.get("group"), example.facts.get("image"))
        matched_id = next((place for place in places if place in names), None)
        if matched_id is None:
            missing.append(example.id)
        else:
            used.add(matched_id)
            pairs.append((example, names[matched_id]))
    unmatched = [prediction_id for prediction_id in names if prediction_id not in used]
    if not pairs:
        raise DataError(f"{source}: no id ({_first_ids(list(names))}) is among the references ({_first_ids(missing)})")
    if (unmatched or missing) and not partial:
        counts = [f"{len(unmatched)} predictions have no references ({_first_ids(unmatched)})"] if unmatched else []
        counts += [f"{len(missing)} references have no prediction ({_first_ids(missing)})"] if missing else []
        raise DataError(f"{source}: {'; '.join(counts)}; --partial scores the {len(pairs)} that have both")
    return pairs


def _first_ids(ids: Sequence[str]) -> str:
    return ", ".join(ids[:3]) + (", ..." if len(ids) > 3 else "")


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(place, row) of a JSON file, JSON lines or a table, also gzipped."""
    if is_table(path):
        yield from _table_rows(path)
        return
    text = read_text(path)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield from _rows_of_line(_parse_line(line, f"{path}:{number}"), f"{path}:{number}")
        return
    content = _rows_of_json(content)
    for number, row in enumerate(content, 1):
        yield from _rows_of_line(row, f"{path}, entry {number}")


def _table_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    header: Sequence[str] = ()
    for line, cells in rows(path):
        if not header:
            header = cells
            if duplicates := [name for name in header if name in KNOWN_KEYS and header.count(name) > 1]:
                raise DataError(f"{path}:{line}: duplicate column '{duplicates[0]}'; keep one of them")
        else:
            yield f"{path}:{line}", {name: _text_of_cell(name, cell) for name, cell in zip(header, cells, strict=True)}


def _text_of_cell(name: str, cell: str) -> str | list[str]:
    """The text of a cell; in a column of texts, the list of its texts."""
    if name in (*TEXT_KEYS, *REFERENCE_KEYS):
        return [text.strip() for text in cell.split(BETWEEN)]
    return cell.strip()


def _rows_of_json(content: Any) -> Sequence[Any]:
    """The rows of a JSON file: of a list, of COCO's or VQA's object with such a list, of {id: texts}, or one row."""
    if not isinstance(content, dict):
        return content if isinstance(content, list) else [content]
    for name in ("annotations", "questions"):
        rows = content.get(name)
        if isinstance(rows, list) and rows and isinstance(rows[0], dict) and "text" not in rows[0]:
            return rows
    if any(name in content for name in ID_KEYS["image"]):
        return [content]
    return [{"id": example_id, "texts": texts} for example_id, texts in content.items()]


def _parse_line(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: {json_problem(error)}{f'; {FORMATS}' * place.endswith(':1')}") from None


def _rows_of_line(row: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """A row, or the rows of a list (mmgen's generations have all texts of an example in one line)."""
    for item in row if isinstance(row, list) else [row]:
        if not isinstance(item, dict):
            raise DataError(f'{place}: expected {{"id": ..., "text": ...}} but got {json.dumps(item)[:40]}')
        yield place, item


def _example_id(row: Mapping[str, Any], per: Per, place: str) -> str:
    for name in ID_KEYS[per]:
        value = row.get(name)
        if value == "":
            raise DataError(f'{place}: "{name}" is empty')
        if isinstance(value, str | int) and not isinstance(value, bool):
            return _image_key_of_id(str(value))
        if value is not None:
            raise DataError(f'{place}: "{name}" must be a string or an integer, not {json.dumps(value)[:40]}')
    raise DataError(f"{place}: no id; give one of {', '.join(ID_KEYS[per])}; the keys are {_list_keys(row)}")


def _image_key_of_id(example_id: str) -> str:
    """The image's key if the id is the path of an image; any other id unchanged, even with a slash."""
    name = image_key(example_id)
    return example_id if name == example_id.rpartition("/")[2] else name


def _list_keys(row: Mapping[str, Any]) -> str:
    return ", ".join(key if key.isprintable() else repr(key) for key in row) or "nothing"


def _texts_of_row(row: Mapping[str, Any], names: Sequence[str], place: str) -> list[str]:
    name = next((name for name in names if name in row), None)
    if name is None:
        raise DataError(f"{place}: no text; give one of {', '.join(names)}; the keys are {_list_keys(row)}")
    values = row[name] if isinstance(row[name], list) else [row[name]]
    texts: list[Any] = [value.get("text") if isinstance(value, dict) else value for value in values]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise DataError(f"{place}: {name} must be a string or a list of strings, not {json.dumps(row[name])[:40]}")
    if (longest := max(map(len, texts))) > LONGEST:
        raise DataError(f"{place}: {name} has {longest:,} characters; the limit is {LONGEST:,}; the file is damaged")
    return texts
