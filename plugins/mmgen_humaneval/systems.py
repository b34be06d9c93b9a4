"""The judged systems: generated texts of steps of runs, and the references that people wrote, on one test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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


def gather(paths: Sequence[Path], steps: Sequence[str], registry: Registry, answer: str = "") -> Material:
    """Gather the texts of the named `steps` of the runs; without names, of all steps that generated texts. `answer`:
    the input or fact with the examples' answers. Raises RunError, also if the runs do not share a test set."""
    if len({path.absolute() for path in paths}) < len(paths):
        raise RunError(f"{paths[0]}: duplicate run; name each run once")
    folders = [RunFolder(path) for path in paths]
    recipes = [folder.recipe(registry) for folder in folders]
    datasets = [
        ScoredExamples(recipe, folder.path).dataset_of("") for recipe, folder in zip(recipes, folders, strict=True)
    ]
    tests = [dataset.split(recipe.data.test_split) for dataset, recipe in zip(datasets, recipes, strict=True)]
    contents = [[(example.id, example.targets) for example in examples] for examples in tests]
    for path, content in zip(paths, contents, strict=True):
        if content != contents[0]:
            raise RunError(
                f"{path}: its test examples differ from those of {paths[0]}; all systems of a sheet must share a test "
                "set"
            )
    prefixes = [f"{name}/" for name in tell_apart(paths)] if len(paths) > 1 else [""]
    available = {
        f"{prefix}{step}": (step, folder)
        for prefix, folder, recipe in zip(prefixes, folders, recipes, strict=True)
        for step in recipe.steps
        if folder.finished(step, "generations.jsonl")
    }
    if not available:
        raise RunError(f"{paths[0]}: no step has generated texts yet; continue the run with `mmgen run`")
    names = dict.fromkeys(step for step, _ in available.values())
    for step in steps:
        if step not in names:
            raise RunError(f"--step: no step '{step}' has generated texts; choose from: {', '.join(names)}")
    texts = {
        system: _read_texts(folder, step, tests[0])
        for system, (step, folder) in available.items()
        if step in (steps or names)
    }
    captions = {example.id: _caption_of(recipes, example) for example in tests[0]}
    answers = {example.id: _answer_of(example, answer) for example in tests[0] if answer}
    return Material(datasets[0], tests[0], texts, {name: text for name, text in captions.items() if text}, answers)


def _answer_of(example: Example, name: str) -> str:
    value = {**example.facts, **example.inputs}.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RunError(f"--answer {name}: example '{example.id}' has no text '{name}' among its inputs and facts")
    return value.strip()


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
