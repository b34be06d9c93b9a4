"""Export: write one step of a run as a folder (config, weights, extractors) that needs no run and no hub."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from huggingface_hub import save_torch_state_dict
from torch import Tensor

from .. import API_VERSION, __version__
from ..configs import FeaturesConfig, PartConfig
from ..errors import RunError, UnavailableError
from ..files import write_folder, write_json
from ..model import EMBEDDERS, Model
from ..parts import Embedder, Extractor
from ..recipe.tables import GENERATOR, parts_in
from ..registry import installed
from ..storage.exports import (
    BACKBONE,
    CARD,
    CONFIG,
    EXAMPLES,
    EXTRACTORS,
    FORMAT_VERSION,
    SHARD,
    VOCABULARIES,
    WEIGHTS,
    is_export,
    without_local_paths,
)
from ..storage.weights import state

if TYPE_CHECKING:
    from .predictor import Predictor

PARTS = ("backbone", "inputs", "generator", "objectives", "sequence", "decoding")  # tables of a recipe in config.json
WITHOUT = "leave it out with --without-extractor, in Python extractor=False"


def export(
    predictor: Predictor,
    folder: str | Path,
    *,
    half: bool = False,
    extractor: bool = True,
    card: Callable[[Path, dict[str, Any]], str] | None = None,
) -> Path:
    """Write the model of a predictor into `folder`; `mmgen.load` reads it.

    half       write weights as bfloat16, half the size
    extractor  include the networks that compute features of pictures
    card       (folder, content of config.json) -> text of the model card; the folder may get the card's pictures

    An existing export is replaced; its model card with its pictures is kept, as are files of others. Raises RunError
    for any other existing folder, and UnavailableError for an extractor that cannot be saved."""
    path = Path(folder)
    if path.exists() and not (path.is_dir() and (is_export(path) or not any(path.iterdir()))):
        raise RunError(f"{path}: already exists and is not an export; choose another folder or delete it")
    existing_card = (path / CARD).read_text(encoding="utf-8") if (path / CARD).is_file() else None
    extra_files = [file for file in path.iterdir() if not _is_export_file(file.name)] if path.is_dir() else []

    def write(partial: Path) -> None:
        model, config = predictor.model, _config_table(predictor, extractor)
        (partial / BACKBONE).mkdir()
        model.backbone.save(partial / BACKBONE)
        written = {f"{EMBEDDERS}{name}.": name in config["inputs"] for name in model.embedders}
        pooled = any(predictor.recipe.objectives[name].pools for name in config["objectives"])
        written["backbone.pooler."] = pooled
        written |= {f"objectives.{name}.": name in config["objectives"] for name in model.objectives}
        config["encoder_prefix"] = _write_weights(model, written, partial, half)
        config["dtype"] = "bfloat16" if half else "float32"
        if config["objectives"] and predictor.model.vocabularies:
            saved = {name: list(classes) for name, classes in predictor.model.vocabularies.items()}
            write_json(partial / VOCABULARIES, {"vocabularies": saved})
        if extractor:
            _save_extractors(predictor, config, partial)
        write_json(partial / CONFIG, config)
        text = existing_card if existing_card is not None else card(partial, config) if card else None
        if text is not None:
            (partial / CARD).write_text(text, encoding="utf-8")
        for file in [*extra_files, *([path / EXAMPLES] if existing_card is not None else [])]:
            if file.is_dir():
                shutil.copytree(file, partial / file.name, symlinks=True)
            elif file.exists():
                shutil.copy2(file, partial / file.name)

    write_folder(path, write)
    return path


def _is_export_file(name: str) -> bool:
    """Whether a name at the top of a folder is one of an export's files, which a second export replaces."""
    known = (CONFIG, VOCABULARIES, CARD, BACKBONE, EXTRACTORS, EXAMPLES, f"{WEIGHTS}.index.json")
    return name in known or SHARD.fullmatch(name) is not None


def _config_table(predictor: Predictor, extractor: bool) -> dict[str, Any]:
    """The content of config.json: the tables of the recipe that the step needs, and who provides their parts."""
    recipe, step = predictor.recipe, predictor.recipe.steps[predictor.step]
    objectives = {
        name: recipe.objectives[name].model_copy(update={"init_from": ""} if "init_from" in fields else {})
        for name in step.objectives
        if name != GENERATOR
        for fields in (type(recipe.objectives[name]).model_fields,)
    }
    inputs = {}
    for name, embedder in predictor.model.embedders.items():
        if name not in step.inputs and not _adds_terms(embedder):
            continue
        config = recipe.inputs[name]
        if isinstance(config, FeaturesConfig):
            reads_pictures = extractor and name in step.inputs
            config = config.model_copy(update={"features": None} | ({} if reads_pictures else {"extractor": None}))
        inputs[name] = config
    exported = recipe.model_copy(update={"inputs": inputs, "objectives": objectives})
    tables = exported.model_dump(mode="json", include=set(PARTS))
    return {
        "format_version": FORMAT_VERSION,
        "model_type": "mmgen",
        "mmgen_version": __version__,
        "api_version": API_VERSION,
        "name": recipe.name,
        "step": predictor.step,
        "kind": predictor.kind,
        "trained_on": predictor.trained_on,
        "columns": recipe.data.table_columns().model_dump(mode="json", exclude={"images"}),
        "step_inputs": list(step.inputs),
        "step_objectives": list(step.objectives),
        **without_local_paths(tables),
        "plugins": _plugins_needed(parts_in((exported.backbone, inputs, exported.generator, objectives))),
    }


def _write_weights(model: Model, names: Mapping[str, bool], folder: Path, half: bool) -> str:
    """Write the weights of a model: the encoder's into `backbone/`, for the library that it comes from, and all others
    into `model.safetensors`. Returns the prefix of the encoder's weights in the model's names.

    names  prefix of weights -> whether to write them
    half   write floating-point weights as bfloat16
    """
    tensors = {
        name: tensor
        for name, tensor in state(model).items()
        if next((written for prefix, written in names.items() if name.startswith(prefix)), True)
    }
    encoder = model.backbone.library_weights()
    name_of = {id(tensor): name for name, tensor in tensors.items()}
    prefixes = {
        name_of[id(tensor)].removesuffix(name)
        for name, tensor in encoder.items()
        if id(tensor) in name_of and name_of[id(tensor)].endswith(name)
    }
    prefix = prefixes.pop() if len(prefixes) == 1 else ""
    if prefix:
        tensors = {
            name: tensor
            for name, tensor in tensors.items()
            if not name.startswith(prefix) or encoder.get(name.removeprefix(prefix)) is not tensor
        }
        _save_sharded(encoder, folder / BACKBONE, half)
    _save_sharded(tensors, folder, half)
    return prefix


def _save_sharded(tensors: Mapping[str, Tensor], folder: Path, half: bool) -> None:
    on_cpu = {
        name: tensor.detach().cpu().to(torch.bfloat16 if half and tensor.is_floating_point() else tensor.dtype).clone()
        for name, tensor in tensors.items()
    }
    save_torch_state_dict(on_cpu, folder, metadata={"format": "pt"})


def _adds_terms(embedder: Embedder) -> bool:
    """Whether an embedder adds a term to slots of other inputs, even if its own input is absent."""
    return type(embedder).add is not Embedder.add or type(embedder).tail_term is not Embedder.tail_term


def _plugins_needed(configs: Iterable[PartConfig]) -> dict[str, dict[str, Any]]:
    """Distribution -> its version and the parts that it provides."""
    used: dict[str, dict[str, Any]] = {}
    registry = installed()
    for config in configs:
        part = next(part for part in registry.of_kind(config.kind) if part.config is type(config))
        entry = used.setdefault(part.source.distribution, {"version": part.source.version, "parts": []})
        entry["parts"].append(f"{part.kind} {part.name}")
    return used


def _save_extractors(predictor: Predictor, config: dict[str, Any], folder: Path) -> None:
    """Save the extractor of each input."""
    for name in config["step_inputs"]:
        settings = predictor.recipe.inputs[name]
        if name not in predictor.features or not isinstance(settings, FeaturesConfig):
            continue
        if settings.extractor is None or settings.extractor.source == "file":
            raise UnavailableError(
                f"{predictor.where}: '{name}' was trained on features whose extractor is not known here, so the export "
                f"could not read pictures; name it with --set, in Python sets of load_run: "
                f"inputs.{name}.extractor.type=NAME, or {WITHOUT}"
            )
        extractor = predictor.features.extractor(name)
        if type(extractor).save is Extractor.save:
            raise UnavailableError(
                f"{predictor.where}: the extractor '{settings.extractor.type}' of '{name}' cannot be saved; {WITHOUT}"
            )
        place = folder / EXTRACTORS / name
        place.mkdir(parents=True)
        extractor.save(place)
