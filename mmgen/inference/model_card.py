"""The model card of an export: what it is for, how to use it, scores, data, training, licence."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

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


def model_card(predictor: Predictor, recipe: Recipe, half: bool) -> str:
    """The text of the card. `recipe`: that of the export, without paths. `half`: whether its weights are rounded."""
    names, folder = predictor.names, predictor.folder
    models = [
        (part.base_model() or "").partition("@")[0]
        for part in parts_in(recipe)
        if isinstance(part, BackboneConfig | ExtractorConfig)
    ]
    base_models = [model for model in dict.fromkeys(models) if model not in ("", "local")]
    task = "image-to-text" if names.pictures else "text-generation"
    fields = (*names.required, *(() if predictor.kind == "text" else names.labels))
    saved = read_table(path) if folder and (path := folder.path / "data.json").is_file() else {}
    data = {key: value for key, value in saved.items() if isinstance(value, str | int) and key != "fingerprint"}
    scores = score.read(folder.step(predictor.step)).values if folder and folder.finished(predictor.step) else {}
    card = ModelCard.from_template(
        ModelCardData(base_model=base_models or None, library_name="mmgen", pipeline_tag=task),
        template_path=str(TEMPLATE),
        predictor=predictor,
        recipe=recipe,
        half=half,
        query={name: f"{name}.jpg" if name in names.pictures else "..." for name in fields},
        packages=", ".join(f"{package} {version(package)}" for package in providers(recipe)),
        files=[file.name for file in recipe.plugins],
        scores=table([["score", "value"], *([name, number(value)] for name, value in scores.items())])
        if scores
        else "",
        base_models=" and ".join(base_models),
        data={key: value for key, value in data.items() if not Path(str(value)).is_absolute()},
    )
    return str(card)
