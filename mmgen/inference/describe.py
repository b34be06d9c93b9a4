"""A description of a finished run or an exported model, for `mmgen info`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from pathlib import Path

from ..progress import table
from ..registry import installed
from ..storage.exports import is_export, read_config, shapes
from ..storage.run_folder import RunFolder
from .best_step import best_step


def describe(folder: Path) -> str:
    """What a folder holds: an export, or a run with its steps. Raises RunError."""
    return "\n".join(_describe_export(folder) if is_export(folder) else _describe_run(RunFolder(folder)))


def _describe_export(folder: Path) -> Iterator[str]:
    config = read_config(folder)
    weights = sum(prod(shape) for shape in shapes(folder, config["encoder_prefix"]).values())
    yield f"{folder}: an export of step '{config['step']}' of '{config['name']}', by mmgen {config['mmgen_version']}"
    yield f"  reads {' and '.join(config['step_inputs'])}; gives {config['kind']}"
    yield f"  encoder {config['backbone'].get('type')}; {weights:,} weights of {config['dtype']}"
    for name, settings in config["inputs"].items():
        extractor = settings.get("extractor")
        extractor = extractor if isinstance(extractor, dict) else {}
        reads = " ".join(str(extractor[key]) for key in ("type", "model", "weights") if extractor.get(key))
        yield f"  {name}: {settings['type']}" + (f", features of {reads}" if reads else "")
    for distribution, entry in config["plugins"].items():
        yield f"  needs {distribution} {entry['version']}: {', '.join(entry['parts'])}"


def _describe_run(folder: RunFolder) -> Iterator[str]:
    recipe = folder.recipe(installed())
    yield f"{folder.path}: a run of '{recipe.name}', profile {recipe.profile or 'default'}, seed {recipe.seed}"
    rows = [["step", "reads", "gives", "state"]]
    for name, step in recipe.steps.items():
        predicts = recipe.predicts(name)
        state = "finished" if folder.done(recipe, name) else "not finished"
        rows.append([name, " and ".join(step.inputs), predicts[1] if predicts and step.evaluate else "nothing", state])
    yield table(rows, texts=4)
    if trained := [name for name in recipe.steps if folder.trained(recipe, name)]:
        chosen = best_step(recipe, folder, trained)
        yield f"step '{chosen.name}' answers unless another is named" + (f": {chosen.reason}" if chosen.reason else "")
