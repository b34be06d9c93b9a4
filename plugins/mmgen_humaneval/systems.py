"""The judged systems: generated texts of steps of runs, and the references that people wrote, on one test set."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmgen.data.seeds import resolve
from mmgen.errors import RunError
from mmgen.examples import Example
from mmgen.parts import Dataset
from mmgen.recipe.tables import Recipe
from mmgen.registry import Registry
from mmgen.report.short_paths import tell_apart
from mmgen.storage import generations
from mmgen.storage.run_folder import RunFolder
from mmgen.storage.scored_examples import ScoredExamples

HUMAN = "human"


@dataclass(frozen=True)
class Material:
    """The data of a sheet.

    texts     system -> example id -> the system's best text
    captions  example id -> the caption that evaluation reads (an example's first), for examples with a caption
    answers   example id -> the answer that its questions were written for; empty if there are none
    """

    dataset: Dataset
    examples: Sequence[Example]
    texts: Mapping[str, Mapping[str, str]]
    captions: Mapping[str, str]
    answers: Mapping[str, str] = field(default_factory=dict)


def gather(paths: Sequence[Path], steps: Sequence[str], registry: Registry) -> Material:
    """Gather the texts of the named `steps` of the runs; without names, of all steps that generated texts. Raises
    RunError, also if the runs do not share a test set."""
    names = _run_names(paths)
    folders = [RunFolder(path) for path in paths]
    recipes = [folder.recipe(registry) for folder in folders]
    datasets = [
        ScoredExamples(recipe, folder.path).dataset_of("") for recipe, folder in zip(recipes, folders, strict=True)
    ]
    tests = [dataset.split(recipe.data.test_split) for dataset, recipe in zip(datasets, recipes, strict=True)]
    for path, examples in zip(paths[1:], tests[1:], strict=True):
        if [(example.id, example.targets) for example in examples] != [
            (example.id, example.targets) for example in tests[0]
        ]:
            raise RunError(
                f"{path}: its test examples differ from those of {paths[0]}; all systems of a sheet must share a test "
                "set"
            )
    texts: dict[str, dict[str, str]] = {}
    available_steps: dict[str, None] = {}
    for name, folder, recipe in zip(names, folders, recipes, strict=True):
        for step in _generated_steps(folder, recipe):
            available_steps[step] = None
            if step in steps or not steps:
                texts[f"{name}/{step}".lstrip("/")] = _read_texts(folder, step, tests[0])
    for step in steps:
        if step not in available_steps:
            raise RunError(f"--step: no step '{step}' has generated texts; choose from: {', '.join(available_steps)}")
    captions = {example.id: _caption_of(recipes, example) for example in tests[0]}
    return Material(
        datasets[0], tests[0], texts, {example_id: caption for example_id, caption in captions.items() if caption}
    )


def with_answers(material: Material, name: str) -> Material:
    """The material with the answers in the input or fact `name` of its examples. Raises RunError."""
    answers = {}
    for example in material.examples:
        value = {**example.facts, **example.inputs}.get(name)
        if not isinstance(value, str) or not value.strip():
            raise RunError(f"--answer {name}: example '{example.id}' has no text '{name}' among its inputs and facts")
        answers[example.id] = value.strip()
    return replace(material, answers=answers)


def _run_names(paths: Sequence[Path]) -> list[str]:
    """Names that differ between the runs; an empty name for a single run."""
    resolved = [os.path.realpath(path) for path in paths]  # resolve() raises for a link to itself
    for index, path in enumerate(paths):
        if resolved.index(resolved[index]) < index:
            raise RunError(f"{path}: duplicate run; name each run once")
    return tell_apart(paths) if len(paths) > 1 else [""]


def _generated_steps(folder: RunFolder, recipe: Recipe) -> list[str]:
    steps = [name for name in recipe.steps if folder.finished(name, "generations.jsonl")]
    if not steps:
        raise RunError(f"{folder.path}: no step has generated texts yet; continue the run with `mmgen run`")
    return steps


def _read_texts(folder: RunFolder, step: str, examples: Sequence[Example]) -> dict[str, str]:
    texts = {example_id: best.text for example_id, best in generations.best(folder.step(step)).items()}
    if any(example.id not in texts for example in examples):
        path = folder.step(step) / "generations.jsonl"
        raise RunError(f"{path}: its examples differ from those of the current data set; run again with --fresh")
    return texts


def _caption_of(recipes: Sequence[Recipe], example: Example) -> str:
    """The texts that the runs read. If the runs read pictures only: those inputs of the example that contain words."""
    resolved = resolve(example)
    input_texts = [text for recipe in recipes for config in recipe.inputs.values() for text in config.texts(resolved)]
    caption_texts = input_texts or [
        value for value in resolved.inputs.values() if isinstance(value, str) and " " in value.strip()
    ]
    return "\n".join(dict.fromkeys(text.strip() for text in caption_texts))
