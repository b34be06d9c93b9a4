"""The model card of an export: what it is for, how to use it, scores, data, training, licence."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import ModelCard, ModelCardData

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
    names, writes, data = predictor.names, predictor.kind == "text", _data(predictor)
    models = [part.base_model() for part in parts_in(recipe) if isinstance(part, BackboneConfig | ExtractorConfig)]
    base_models = [model for model in dict.fromkeys(models) if model not in (None, "local")]
    task = ("image-to-text" if writes else "visual-question-answering") if names.pictures else "text-generation"
    fields = (*names.required, *(() if writes else names.labels))
    query = {name: f"{name}.jpg" if name in names.pictures else "..." for name in fields}
    card = ModelCard.from_template(
        ModelCardData(base_model=base_models or None, library_name="mmgen", pipeline_tag=task, tags=["bert-gen"]),
        template_path=str(TEMPLATE),
        title=f"{recipe.name}: {predictor.step}",
        purpose=recipe.description or "A model made with mmgen.",
        limits=f"It was {predictor.limits}." if predictor.limits else "",
        reads=" and ".join(names.inputs),
        gives=GIVES.get(predictor.kind, predictor.kind),
        packages=", ".join(f"{package} {version(package)}" for package in providers(recipe)),
        files=[file.name for file in recipe.plugins],
        where=f"hf:user/{recipe.name}",
        call=f"{'ask' if writes else 'predict'}({query})",
        command="generate" if writes else "predict",
        options=" ".join(f"--input {name}={value}" for name, value in query.items()),
        data=data,
        split=predictor.recipe.data.test_split,
        scores=_scores(predictor),
        training=_training(predictor.recipe, predictor.step),
        base_models=" and ".join(base_models),
        half=half,
    )
    return str(card)


def _data(predictor: Predictor) -> dict[str, Any]:
    """What the run has noted about its data, without paths."""
    path = predictor.folder.path / "data.json" if predictor.folder else Path()
    saved = read_table(path) if path.is_file() else {}
    return {
        key: value
        for key, value in saved.items()
        if isinstance(value, str | int) and key != "fingerprint" and not Path(str(value)).is_absolute()
    }


def _scores(predictor: Predictor) -> str:
    folder, step = predictor.folder, predictor.step
    if folder is None or not folder.finished(step):
        return ""
    values = score.read(folder.step(step)).values
    return table([["score", "value"], *([name, number(value)] for name, value in values.items())])


def _training(recipe: Recipe, last: str) -> list[str]:
    """A line for every step behind the model."""
    lines = []
    for name in recipe.chain(last):
        step = recipe.steps[name]
        start = "published weights" if step.weights else f"'{step.start}'"
        parts = " and ".join(step.train) or "nothing"
        lines.append(f"Step '{name}': reads {' and '.join(step.inputs)}; trains {parts}; starts from {start}.")
    return lines
