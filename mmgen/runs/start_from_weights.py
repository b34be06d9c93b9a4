"""Start steps from published weights or an export: each part selects its tensors; shapes, words and halves are checked.

The files are read when the step starts. Its checkpoint has all weights, so a resumed step needs the files no more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from torch import Tensor

from ..errors import DataError, MmgenError, PluginError
from ..files import read_table
from ..inference.hub import find_folder
from ..model import EMBEDDERS, Model
from ..parts import Part
from ..progress import Progress
from ..recipe.tables import EXPORT, GENERATOR, Recipe
from ..recipe.weight_files import check_export
from ..registry import installed
from ..storage.model_files import INPUTS, read_vocabularies
from ..storage.published_weights import PublishedWeights, read_published
from ..storage.run_folder import RunFolder
from ..storage.step_weights import read_step
from ..storage.weights import load_state, state

MOST_SHOWN = 8  # names in a line


def load_start(recipe: Recipe, step: str, model: Model, progress: Progress) -> set[str]:
    """Load the published weights of a step into an untrained model, and say what is taken. Returns the names of what
    was loaded, none for another start. Raises DataError, RunError, PluginError."""
    source, parameters = recipe.steps[step].weights, state(model)
    if source is None:
        return set()
    try:
        weights = ExportedWeights(source, model) if source.startswith(EXPORT) else read_published(source)
        tensors = select_tensors(recipe, step, model, weights)
    except MmgenError as error:
        error.about = ("steps", step, "start")
        raise
    load_state(model, {**parameters, **tensors}, source)
    prefixes = tuple(prefix for _, prefix, _ in _parts(recipe, step, model))
    untouched = [key for key in parameters if key.startswith(prefixes) and key not in tensors]
    unused = weights.left_over
    line = f"{step}: {recipe.steps[step].start}: {len(weights) - len(unused)} of {len(weights)} tensors taken"
    progress.say(f"{line}{_list_names('left over', unused)}{_list_names('as built', untouched)}")
    return set(tensors)


def _list_names(what: str, names: Sequence[str]) -> str:
    shown = ", ".join([*names[:MOST_SHOWN], *["..."] * (len(names) > MOST_SHOWN)])
    return f"; {what} {len(names)} ({shown})" if names else ""


def select_tensors(recipe: Recipe, step: str, model: Model, weights: PublishedWeights) -> dict[str, Tensor]:
    """The tensors that the parts of a step take from weights, by parameter name. Weights of mmgen, which have the
    model's names, need no conversion. Raises DataError if no tensor or a wrong size matches, and PluginError."""
    parameters, parts, tensors = state(model), _parts(recipe, step, model), dict[str, Tensor]()
    names = {id(tensor): name for name, tensor in parameters.items()}
    for owner, prefix, module in parts:
        own = {key: names[id(tensor)] for key, tensor in module.state_dict(keep_vars=True).items()}
        if isinstance(weights, ExportedWeights) and not weights.fit(prefix, module, recipe, model):
            continue
        loaded = {key: weights[prefix + key] for key in own if prefix + key in weights}
        if not loaded and not isinstance(weights, ExportedWeights):
            loaded = dict(module.published(weights))
        for key, tensor in loaded.items():
            if key not in own:
                raise PluginError(f"{owner}: published returns '{key}', which is not one of its parameters")
            if problem := _problem(tensor, own[key], parameters[own[key]]):
                raise DataError(f"'{weights.source}': {owner}: '{key}' {problem}")
            tensors[own[key]] = tensor.to(parameters[own[key]].dtype)
    if not tensors:
        first_names, owners = ", ".join(list(weights)[:3]), ", ".join(owner for owner, _, _ in parts)
        raise DataError(
            f"'{weights.source}': none of the {len(weights)} tensors matches a part of this step ({owners}); the "
            f"tensors are named: {first_names}"
        )
    return tensors


def _parts(recipe: Recipe, step: str, model: Model) -> list[tuple[str, str, Part]]:
    """The parts of a step that may take weights: the name in messages, the prefix of parameter names, the module."""
    objectives = recipe.steps[step].objectives
    inputs = [name for name in recipe.steps[step].inputs if name in model.inputs]
    return [
        ("the backbone", "backbone.", model.backbone),
        *((f"input '{name}'", f"{EMBEDDERS}{name}.", model.embedders[name]) for name in inputs),
        *(
            ("the generator", "generator.", model.generator)
            if name == GENERATOR
            else (f"objective '{name}'", f"objectives.{name}.", model.objective(name))
            for name in objectives
        ),
    ]


def _problem(tensor: Tensor, name: str, parameter: Tensor) -> str:
    """Why a tensor cannot become a parameter: another shape, quantised or non-finite values."""
    if tensor.shape != parameter.shape:
        shapes = f"has shape {tuple(tensor.shape)}, but {name} has shape {tuple(parameter.shape)}"
        return f"{shapes}; set the sizes of these weights in the recipe, or use other weights"
    if parameter.is_floating_point() and not tensor.is_floating_point():
        return f"is quantised ({tensor.dtype}) without its scales; use weights that are not quantised"
    return "" if tensor.isfinite().all() else "is not finite (NaN or infinite); the file is damaged"


class ExportedWeights(PublishedWeights):
    """The weights of an export, by the names of mmgen. Raises DataError if the model's words have other numbers than
    those of the export."""

    def __init__(self, source: str, model: Model) -> None:
        check_export(source.removeprefix(EXPORT))
        self.folder = RunFolder(find_folder(source.removeprefix(EXPORT)))
        recipe, file = self.folder.recipe(installed()), self.folder.backbone / "tokenizer.json"
        super().__init__(source, read_step(recipe, self.folder, next(iter(recipe.steps))))
        ours = getattr(model.backbone.tokenizer, "backend_tokenizer", None)
        if (read_table(file).get("model") if file.exists() else None) != (ours and json.loads(ours.to_str())["model"]):
            raise DataError(
                f"'{source}': its tokenizer differs from that of the recipe's backbone; export it with "
                f'--transformers, and set backbone.weights = "{self.folder.backbone}"'
            )

    def fit(self, prefix: str, module: Part, recipe: Recipe, model: Model) -> bool:
        """Whether a part's tensors have the same sizes in the export, and mean the same: an input's features, the
        classes of a head."""
        kind, _, name = prefix.removesuffix(".").partition(".")
        if kind == EMBEDDERS.removesuffix("."):
            saved = read_table(self.folder.path / INPUTS).get(name, {}).get("fingerprint")
            allowed = getattr(recipe.inputs[name], "allow_other_features", False)
            settings = json.loads(json.dumps(model.embedders[name].inferred_settings()))
            if saved is not None and saved != settings.get("fingerprint") and not allowed:
                return False
        if kind == "objectives":
            ours, theirs = model.vocabularies, read_vocabularies(self.folder.path)
            if any(ours.get(label) != theirs.get(label) for label in recipe.objectives[name].required_labels):
                return False
        own = {prefix + key: tensor.shape for key, tensor in module.state_dict().items()}
        return all(self.data[key].shape == shape for key, shape in own.items() if key in self)
