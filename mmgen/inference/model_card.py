"""The model card of an export: what it is for, how to use it, scores, data, training, licence."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..configs import BackboneConfig, ExtractorConfig
from ..evaluation import score
from ..files import read_table
from ..progress import number, table
from ..recipe.tables import Recipe, parts_in
from ..storage.environment import providers

if TYPE_CHECKING:
    from .predictor import Predictor

TEMPLATE = Path(__file__).with_name("model_card.md")
GIVES = {"text": "texts", "label": "a label", "choice": "a choice", "region": "a region"}


def model_card(predictor: Predictor, recipe: Recipe, half: bool) -> str:
    """The text of the card. `recipe`: that of the export, without paths. `half`: whether its weights are rounded."""
    name, names, writes = recipe.name, predictor.names, predictor.kind == "text"
    labels = () if writes else names.labels
    folder = predictor.folder if predictor.folder and predictor.folder.finished(predictor.step) else None
    scores = score.read(folder.step(predictor.step)).values if folder else {}
    data = _data(predictor)
    tested = f"{data.get('name', 'the data')}, split '{predictor.recipe.data.test_split}'"
    models = [part.base_model() for part in parts_in(recipe) if isinstance(part, BackboneConfig | ExtractorConfig)]
    base_models = [model for model in dict.fromkeys(models) if model not in (None, "local")]
    task = ("image-to-text" if writes else "visual-question-answering") if names.pictures else "text-generation"
    shown = {key: number(value) for key, value in scores.items() if value is not None}
    results = [
        EvalResult(task, name, tested, key, round(value, 4)) for key, value in scores.items() if value is not None
    ]
    metadata = ModelCardData(
        base_model=base_models or None,
        library_name="mmgen",
        pipeline_tag=task,
        tags=["mmgen", "bert-gen"],
        model_name=f"{name} {predictor.step}" if results else None,
        eval_results=results or None,
    )
    values = {key: f"{key}.jpg" if key in names.pictures else "..." for key in (*names.required, *labels)}
    card = ModelCard.from_template(
        metadata,
        template_path=str(TEMPLATE),
        title=f"{name}: {predictor.step}",
        purpose=recipe.description or "A model made with mmgen.",
        limits=f"It was {predictor.limits}." if predictor.limits else "",
        reads=" and ".join(names.inputs),
        gives=GIVES.get(predictor.kind, predictor.kind),
        packages=", ".join(f"{package} {version(package)}" for package in providers(recipe)),
        where=f"hf:user/{name}",
        call=f"{'ask' if writes else 'predict'}({', '.join(f'{key}={text!r}' for key, text in values.items())}).value",
        command=f"{'generate' if writes else 'predict'} hf:user/{name} "
        + " ".join(f"--input {key}={text}" for key, text in values.items()),
        scores=f"On {tested}.\n\n{table([['score', 'value'], *map(list, shown.items())])}" if shown else "",
        training=[*_training(predictor), *(f"{key}: {value}" for key, value in data.items())],
        base_models=" and ".join(base_models),
        half=half,
    )
    return str(card)


def _data(predictor: Predictor) -> dict[str, Any]:
    """What the run has noted about its data."""
    path = predictor.folder.path / "data.json" if predictor.folder else None
    saved = read_table(path) if path and path.exists() else {}
    return {key: value for key, value in saved.items() if isinstance(value, str | int) and key != "fingerprint"}


def _training(predictor: Predictor) -> list[str]:
    """A line for every step behind the model."""
    recipe = predictor.recipe
    return [
        f"Step '{name}': reads {' and '.join(step.inputs)}; trains {' and '.join(step.train) or 'nothing'}; "
        f"starts from '{step.start}'; seed {recipe.seed}."
        for name in recipe.chain(predictor.step)
        for step in (recipe.steps[name],)
    ]
