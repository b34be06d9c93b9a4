"""The table of a run: a row a step, the published rows and what people and chance reach beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..checkpoint import write_text
from ..parts import Dataset
from ..recipe import Recipe
from ..runfolder import RunFolder
from ..stages import score
from ..tensors import Example, Generation

Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Table:
    """Rows by label, each column -> value; and how the numbers were made."""

    columns: tuple[str, ...]
    steps: Mapping[str, Values]
    references: Mapping[str, Values]  # what people's questions reach, and chance
    published: Mapping[str, Values]  # labels of the paper's own models are names of steps
    notes: tuple[str, ...]


def gather(recipe: Recipe, folder: RunFolder, dataset: Dataset) -> Table:
    """The table of the steps that are finished."""
    steps: dict[str, Values] = {}
    notes: dict[str, None] = {}
    for name in recipe.steps:
        if folder.finished(name):
            scores = score.read(folder.step(name))
            steps[name] = scores.values
            notes.update(dict.fromkeys(scores.notes))
    columns = tuple(dict.fromkeys(column for values in steps.values() for column in values))
    references = _references(recipe, dataset, notes)
    described = dataset.describe()
    if "published_from" in described:
        notes[f"published rows: {described['published_from']}"] = None
    return Table(columns, steps, references, described.get("published", {}), tuple(notes))


def write_table(recipe: Recipe, folder: RunFolder, dataset: Dataset) -> None:
    write_text(folder.path / "table.md", f"# {recipe.name}\n\n{table(recipe, folder, dataset)}\n")


def table(recipe: Recipe, folder: RunFolder, dataset: Dataset) -> str:
    """Markdown that is read as well in a terminal: rows, then notes on how the numbers were made."""
    found = gather(recipe, folder, dataset)
    published = {f"{label} (published)": values for label, values in found.published.items()}
    rows = [*found.steps.items(), *found.references.items(), *published.items()]
    cells = [[label, *(cell(values.get(column)) for column in found.columns)] for label, values in rows]
    return "\n".join([*_markdown([["step", *found.columns], *cells]), "", *found.notes])


def _references(recipe: Recipe, dataset: Dataset, notes: dict[str, None]) -> dict[str, Values]:
    """What people's questions reach, and chance, where a metric says."""
    people: dict[str, float | None] = {}
    chance: dict[str, float | None] = {}
    for config in recipe.metrics.values():
        scores = config.build().references(dataset.split(recipe.data.evaluate))
        if scores is None:
            continue
        notes.update(dict.fromkeys(scores.notes))
        for name, value in scores.values.items():
            (chance if name.startswith("chance_") else people)[name.removeprefix("chance_")] = value
    return {label: values for label, values in (("people", people), ("chance", chance)) if values}


def cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _markdown(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of cells, the first one the header, padded so that columns stand under one another."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "| "
        + " | ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        + " |"
        for row in rows
    ]
    rule = (
        "|"
        + "|".join("-" * (width + 2) if not column else "-" * (width + 1) + ":" for column, width in enumerate(widths))
        + "|"
    )
    return [lines[0], rule, *lines[1:]]


def samples(texts: Sequence[list[Generation]], examples: Sequence[Example], count: int = 4) -> str:
    """Some of the questions, beside the captions and what people asked."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example = examples[index]
        lines.append(f"    {texts[index][0].text:<42} <- {example.id}: {_caption(example)}")
    return "\n".join(lines[:count])


def _caption(example: Example) -> str:
    """The first text that is among the inputs, or else what people asked."""
    captions = [value[0] for value in example.inputs.values() if isinstance(value, tuple) and value]
    return captions[0] if captions else f"(people asked: {example.targets[0]})" if example.targets else ""
