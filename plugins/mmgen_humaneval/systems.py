"""Who is judged: the steps of one run or several, and the people who wrote the references, all on one test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmgen.data.seeds import resolve
from mmgen.errors import RunError
from mmgen.parts import Dataset
from mmgen.recipe.tables import Recipe
from mmgen.registry import Registry
from mmgen.report.labels import tell_apart
from mmgen.storage import generations
from mmgen.storage.kept_examples import dataset_of
from mmgen.storage.run_folder import RunFolder
from mmgen.tensors import Example

HUMAN = "human"


@dataclass(frozen=True)
class Material:
    """What a sheet is made from.

    texts     system -> example id -> the best text it wrote
    captions  example id -> the caption that evaluation reads (an example's first); only those that have one
    """

    dataset: Dataset
    examples: Sequence[Example]
    texts: Mapping[str, Mapping[str, str]]
    captions: Mapping[str, str]


def gather(paths: Sequence[Path], steps: Sequence[str], registry: Registry) -> Material:
    """All steps of the runs that have written, or those named. Raises RunError, also when runs do not share a test
    set."""
    labels = _labels(paths)
    folders = [RunFolder(path) for path in paths]
    recipes = [folder.recipe(registry) for folder in folders]
    datasets = [dataset_of(recipe, folder.path) for recipe, folder in zip(recipes, folders, strict=True)]
    tests = [dataset.split(recipe.data.evaluate) for dataset, recipe in zip(datasets, recipes, strict=True)]
    for path, examples in zip(paths[1:], tests[1:], strict=True):
        if [(each.id, each.targets) for each in examples] != [(each.id, each.targets) for each in tests[0]]:
            raise RunError(
                f"{path}: its test examples are not those of {paths[0]}; the systems of one sheet need one test set"
            )
    texts: dict[str, dict[str, str]] = {}
    there: dict[str, None] = {}
    for label, folder, recipe in zip(labels, folders, recipes, strict=True):
        for step in _written(folder, recipe):
            there[step] = None
            if step in steps or not steps:
                texts[f"{label}/{step}".lstrip("/")] = _texts(folder, step, tests[0])
    for step in steps:
        if step not in there:
            raise RunError(f"--step: no step '{step}' has written; there are: {', '.join(there)}")
    captions = {example.id: _caption(recipes, example) for example in tests[0]}
    return Material(datasets[0], tests[0], texts, {own: caption for own, caption in captions.items() if caption})


def _labels(paths: Sequence[Path]) -> list[str]:
    """What tells the runs apart; nothing for one run alone."""
    places = [path.resolve() for path in paths]
    for place, path in enumerate(paths):
        if places.index(places[place]) < place:
            raise RunError(f"{path}: named twice; a run stands on a sheet once")
    return tell_apart(paths) if len(paths) > 1 else [""]


def _written(folder: RunFolder, recipe: Recipe) -> list[str]:
    found = [name for name in recipe.steps if folder.finished(name, "generations.jsonl")]
    if not found:
        raise RunError(f"{folder.path}: no step has written yet; go on with `mmgen run`")
    return found


def _texts(folder: RunFolder, step: str, examples: Sequence[Example]) -> dict[str, str]:
    texts = {own: best.text for own, best in generations.best(folder.step(step)).items()}
    if any(example.id not in texts for example in examples):
        path = folder.step(step) / "generations.jsonl"
        raise RunError(f"{path}: written for other examples than the data set holds now; run again with --fresh")
    return texts


def _caption(recipes: Sequence[Recipe], example: Example) -> str:
    """The texts that a run reads; where none reads any (pictures alone), what among the inputs is written in words."""
    resolved = resolve(example)
    read = [text for recipe in recipes for config in recipe.inputs.values() for text in config.texts(resolved)]
    texts = read or [value for value in resolved.inputs.values() if isinstance(value, str) and " " in value.strip()]
    return "\n".join(dict.fromkeys(text.strip() for text in texts))
