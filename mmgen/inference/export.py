"""Export: one step of a run as a folder that needs no run, no data and no hub; `load` reads it as it reads a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from safetensors.torch import save_file

from ..configs import FeaturesConfig
from ..errors import RunError
from ..files import write_folder, write_json
from ..model import EMBEDDERS
from ..parts import Embedder
from ..recipe.paths import without_local_paths
from ..recipe.tables import PRETRAINED, NoData, Recipe, parts_in
from ..registry import installed
from ..storage.model_files import EXTRACTORS, write_model_files
from ..storage.run_folder import RunFolder
from ..storage.weights import state, write_tensors
from .model_card import model_card

if TYPE_CHECKING:
    from .predictor import Predictor


def export(
    predictor: Predictor,
    folder: str | Path,
    *,
    half: bool = False,
    extractor: bool = True,
    transformers: bool = False,
) -> Path:
    """Write the model of a predictor into a new folder, which `mmgen.load` reads.

    half          write weights as bfloat16, half the size
    extractor     include the networks that compute features of pictures
    transformers  write the encoder's weights a second time, so that the library it comes from loads `backbone/`

    Raises RunError for an existing folder, and UnavailableError for an extractor that cannot be saved."""
    path, model = Path(folder), predictor.model
    if path.exists():
        raise RunError(f"{path}: already exists; choose another folder or delete it")
    recipe = _exported_recipe(predictor, extractor)
    left_out = tuple(
        [f"{EMBEDDERS}{name}." for name in model.embedders if name not in recipe.inputs]
        + [f"objectives.{name}." for name in model.objectives if name not in recipe.objectives]
        + ["backbone.pooler."] * (not any(config.pools for config in recipe.objectives.values()))
    )

    def write(place: Path) -> None:
        run = RunFolder(place)
        write_json(place / "recipe.json", recipe.model_dump(mode="json", exclude={"output", "jobs"}))
        inputs = {name: model.embedders[name].inferred_settings() for name in recipe.inputs}
        write_model_files(model, run, inputs, model.vocabularies if recipe.objectives else {})
        saved = {
            name: tensor.bfloat16() if half and tensor.is_floating_point() else tensor
            for name, tensor in state(model).items()
            if not name.startswith(left_out)
        }
        write_tensors(run.weights(predictor.step), saved, {"format": "pt", "step": predictor.step})
        if transformers:
            weights = {name: tensor.detach().cpu() for name, tensor in model.backbone.library_weights().items()}
            save_file(weights, run.backbone / "model.safetensors", {"format": "pt"})
        if extractor:
            _save_extractors(predictor, place / EXTRACTORS)
        (place / "README.md").write_text(model_card(predictor, recipe, half), encoding="utf-8")

    write_folder(path, write)
    return path


def _exported_recipe(predictor: Predictor, extractor: bool) -> Recipe:
    """The recipe with the one step, which reads nothing outside of the export, and without paths of this machine."""
    recipe, step = predictor.recipe, predictor.recipe.steps[predictor.step]
    inputs = {}
    for name, embedder in predictor.model.embedders.items():
        if name in step.inputs or _adds_terms(embedder):
            config = recipe.inputs[name]
            if isinstance(config, FeaturesConfig):
                pictures = {} if extractor and name in step.inputs else {"extractor": None}
                config = config.model_copy(update={"features": None, **pictures})
            inputs[name] = config
    objectives = {
        name: head.model_copy(update={"init_from": ""} if hasattr(head, "init_from") else {})
        for name, head in recipe.objectives.items()
        if name in step.objectives
    }
    changes = {
        "profile": None,
        "inputs": inputs,
        "objectives": objectives,
        "steps": {
            predictor.step: step.model_copy(
                update={
                    "train": step.train or ("backbone",),
                    "start": PRETRAINED,
                    "data": (),
                    "decoding": None,
                    "evaluate": recipe.predicts(predictor.step) is not None,
                }
            )
        },
        "default_step": None,
        "data": NoData(about=recipe.only_about(predictor.step)[:80]),
        **dict.fromkeys(("metrics", "probes", "callbacks"), {}),
    }
    exported = without_local_paths(recipe.model_copy(update=changes))
    return exported.model_copy(update={"plugins": tuple(map(Path, installed().files(parts_in(exported))))})


def _adds_terms(embedder: Embedder) -> bool:
    """Whether an embedder adds a term to slots of other inputs, even if its own input is absent."""
    return type(embedder).add is not Embedder.add or type(embedder).tail_term is not Embedder.tail_term


def _save_extractors(predictor: Predictor, folder: Path) -> None:
    """Save the extractor of each input of the step, if it is known. Raises UnavailableError."""
    for name, embedder in predictor.features.embedders.items():
        extractor = embedder.reader.config.extractor
        if extractor and extractor.source == "pictures":
            (folder / name).mkdir(parents=True)
            predictor.features.extractor(name).save(folder / name)
