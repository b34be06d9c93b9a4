"""The model card of an export: use, scores with intervals, examples, data, training, start, limits."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData

from ..configs import BackboneConfig, ExtractorConfig, FeaturesConfig
from ..data.part_checks import score_with
from ..data.seeds import resolve
from ..errors import MmgenError
from ..evaluation import score
from ..evaluation.answers import predict, read_answers
from ..examples import Example, Generation, Prediction, Scores
from ..features.pixels import load_image
from ..parts import Dataset
from ..progress import Progress, number, table
from ..recipe.tables import Step, parts_in
from ..report.pictures import find
from ..report.rendering import step_renderer
from ..scoring.intervals import groups_of, intervals
from ..storage.exports import EXAMPLES, without_local_paths
from ..storage.scored_examples import ScoredExamples

if TYPE_CHECKING:
    from .predictor import Predictor

TEMPLATE = Path(__file__).with_name("model_card.md")
SHOWN = 3  # examples
SIDE = 320  # of their pictures, in pixels


@dataclass(frozen=True)
class Evaluation:
    """What a run knows of its step: the test examples with their predictions, and the scores."""

    dataset: Dataset | None = None
    examples: Sequence[Example] = ()
    predictions: Mapping[str, Generation | Prediction] = field(default_factory=dict)
    scores: Scores = field(default_factory=lambda: Scores({}))


def model_card(predictor: Predictor, progress: Progress, half: bool = False) -> Callable[[Path, dict[str, Any]], str]:
    """The function that writes the card's pictures into the folder of an export, and returns the card's text.

    half  predict the test examples again with weights rounded to bfloat16, and show how the scores change"""

    def card(folder: Path, config: dict[str, Any]) -> str:
        evaluation = _read_evaluation(predictor)
        rounded = _scores_in_half(predictor, evaluation, progress) if half else None
        return _card_text(predictor, evaluation, folder, config, rounded)

    return card


def _read_evaluation(predictor: Predictor) -> Evaluation:
    """What the run's folder and data have; parts that are missing stay empty, since a card must not need them."""
    folder, step, recipe = predictor.folder, predictor.step, predictor.recipe
    if folder is None or not folder.finished(step):
        return Evaluation()
    data = ScoredExamples(recipe, folder.path)
    try:
        predicted = {answer.id: answer for answer in read_answers(recipe, step, folder.step(step))}
        return Evaluation(data.dataset_of(step), data.scored_by(step), predicted, score.read(folder.step(step)))
    except MmgenError:
        return Evaluation()


def _scores_in_half(predictor: Predictor, evaluation: Evaluation, progress: Progress) -> Scores | None:
    """Scores with weights rounded to bfloat16; the weights are restored. None without test examples."""
    if not evaluation.examples:
        return None
    weights = {name: tensor.clone() for name, tensor in predictor.model.state_dict().items()}
    rounded = {
        name: tensor.bfloat16().to(tensor.dtype) if tensor.is_floating_point() else tensor
        for name, tensor in weights.items()
    }
    metrics = predictor.recipe.judging(predictor.step)
    with progress.task("scoring in half precision", len(metrics) + 1) as advance:
        try:
            predictor.model.load_state_dict(rounded)
            predicted: Sequence[Any]
            if predictor.kind == "text":
                predicted = [texts[0] for texts in predictor.generate(evaluation.examples)]
            else:
                inputs = tuple(predictor.names.inputs)
                predicted = predict(predictor.model, evaluation.examples, predictor.objective, inputs)
        finally:
            predictor.model.load_state_dict(weights)
        advance(1)
        scores = {}
        for name, config in metrics.items():
            if not config.needs_pictures:
                scores[name] = score_with(name, config.build(), predicted, evaluation.examples)
            advance(1)
    return score.merge_metrics(scores)


def _card_text(
    predictor: Predictor, evaluation: Evaluation, folder: Path, config: Mapping[str, Any], rounded: Scores | None
) -> str:
    recipe, kind = predictor.recipe, predictor.kind
    writes, pictures = kind == "text", predictor.names.pictures
    texts = [name for name in predictor.names.required if name not in pictures]
    labels = predictor.needed_labels()
    values = [f'{name}="..."' for name in texts] + [f'{name}=["...", "..."]' for name in labels]
    options = [f"--input {name}=..." for name in (*texts, *labels)]
    named = len(pictures) > 1
    shown = [f'{name}="{name}.jpg"' for name in pictures] if named else ['"photo.jpg"'] if pictures else []
    card = ModelCard.from_template(
        _card_metadata(predictor, evaluation, config),
        template_path=str(TEMPLATE),
        title=f"{recipe.name}: {predictor.step}",
        purpose=recipe.description or f"A model that gives {KINDS.get(kind, kind)}.",
        where=f"hf:user/{recipe.name}",
        method="ask" if writes else "predict",
        call=", ".join([*(values if named else []), *shown, *([] if named else values), *(["n=3"] if writes else [])]),
        result="*[text.text for text in answer.texts], sep='\\n'" if writes else "answer.value",
        command="generate" if writes else "predict",
        arguments=" ".join(
            [f"--input {name}={name}.jpg" for name in pictures] if named else ["photo.jpg"] if pictures else []
        )
        + "".join(f" {option}" for option in options),
        reads=f"Reads {' and '.join(predictor.names.inputs)}; gives {KINDS.get(kind, kind)}."
        + _without_extractor(predictor, config),
        examples=_show_examples(predictor, evaluation, folder),
        scores=_score_table(evaluation),
        scored_on=_scored_on(predictor, evaluation),
        notes=evaluation.scores.notes,
        half=_describe_half_precision(evaluation, rounded, config),
        training=_describe_training(predictor, evaluation),
        limits=_describe_limits(predictor),
        mmgen_version=config["mmgen_version"],
        api_version=config["api_version"],
        parts="; ".join(
            f"{distribution} {entry['version']}: {', '.join(entry['parts'])}"
            for distribution, entry in config["plugins"].items()
        ),
    )
    return str(card)


def _card_metadata(predictor: Predictor, evaluation: Evaluation, config: Mapping[str, Any]) -> ModelCardData:
    task = "image-to-text" if predictor.kind == "text" else "visual-question-answering"
    task = task if predictor.names.pictures else "text-generation"
    data = str(evaluation.dataset.describe().get("name", "test data")) if evaluation.dataset else ""
    results = [
        EvalResult(task, config["name"], data, name, round(value, 4))
        for name, value in evaluation.scores.values.items()
        if value is not None and data
    ]
    return ModelCardData(
        base_model=_base_models(predictor) or None,
        library_name="mmgen",
        pipeline_tag=task,
        tags=["mmgen", "bert-gen"],
        model_name=f"{config['name']} {predictor.step}" if results else None,
        eval_results=results or None,
    )


def _base_models(predictor: Predictor) -> list[str]:
    """The names of the pretrained weights of the encoder and of the networks that see pictures, without local paths."""
    parts = parts_in((predictor.recipe.backbone, tuple(predictor.names.inputs.values())))
    names = [part.base_model() for part in parts if isinstance(part, BackboneConfig | ExtractorConfig)]
    return [name for name in dict.fromkeys(without_local_paths(names)) if name not in (None, "local")]


def _show_examples(predictor: Predictor, evaluation: Evaluation, folder: Path) -> list[dict[str, Any]]:
    """Test examples with their pictures, which are written into the folder."""
    count = len(evaluation.examples)
    chosen = [evaluation.examples[count * place // SHOWN] for place in range(min(SHOWN, count))]
    chosen = [example for example in chosen if example.id in evaluation.predictions]
    if not chosen or evaluation.dataset is None:
        return []
    renderer = step_renderer(predictor.recipe, predictor.step)
    pictures, _ = find(evaluation.dataset, chosen)
    shown: list[dict[str, Any]] = []
    for example in chosen:
        resolved = resolve(example)
        files: list[str] = []
        for picture in pictures.get(example.id, ()) if predictor.names.pictures else ():
            name = f"{EXAMPLES}/{len(shown) + 1}-{len(files) + 1}.jpg"
            image = load_image(picture)
            image.thumbnail((SIDE, SIDE))
            (folder / EXAMPLES).mkdir(exist_ok=True)
            image.save(folder / name, quality=85)
            files.append(name)
        fields = [
            field_
            for name, config in predictor.names.inputs.items()
            if name not in predictor.names.pictures
            for field_ in config.fields
        ]
        inputs = [f"- {name}: {value}" for name in fields if isinstance(value := resolved.inputs.get(name), str)]
        line = renderer.line(resolved, evaluation.predictions[example.id])
        shown.append({"id": example.id, "pictures": files, "lines": [*inputs, f"- **{line}**"]})
    return shown


def _score_table(evaluation: Evaluation) -> str:
    """Every score, with its 95 % interval if it is a mean over examples."""
    scores = evaluation.scores
    if not scores.values:
        return ""
    spans = {
        name: "{} to {}".format(*map(number, span))
        for name, span in intervals(scores, {}, groups_of(evaluation.examples)).items()
    }
    rows = [[name, number(value), spans.get(name, "")] for name, value in scores.values.items()]
    return table([["score", "value", "95 % interval"], *rows])


def _scored_on(predictor: Predictor, evaluation: Evaluation) -> str:
    if evaluation.dataset is None:
        return ""
    name, split = evaluation.dataset.describe().get("name", "the data"), predictor.recipe.data.test_split
    resampled = "Intervals: bootstrap over images, 1,000 resamples; scores without one are not means over examples."
    return f"On {len(evaluation.examples):,} examples of {name}, split '{split}'. {resampled}"


def _describe_half_precision(evaluation: Evaluation, rounded: Scores | None, config: Mapping[str, Any]) -> str:
    if config["dtype"] != "bfloat16":
        return ""
    if rounded is None:
        return "The weights are stored as bfloat16. The effect on the scores was not measured: no data."
    before = evaluation.scores.values
    changes = [[name, number(before.get(name)), number(value)] for name, value in rounded.values.items()]
    return "\n".join(
        [
            "The weights are stored as bfloat16. Scores on the test examples with weights in float32 and rounded:",
            "",
            table([["score", "float32", "bfloat16"], *changes]),
        ]
    )


def _describe_training(predictor: Predictor, evaluation: Evaluation) -> list[str]:
    recipe, name = predictor.recipe, predictor.step
    if predictor.folder is None:
        return ["See the model card of the export from which this one was made."]
    lines = [
        f"Step '{step}': reads {' and '.join(config.inputs)}; trains {' and '.join(config.train) or 'nothing'}; "
        f"starts from {_describe_start(config, recipe.backbone)}."
        for step in recipe.chain(name)
        for config in (recipe.steps[step],)
    ]
    described = evaluation.dataset.describe() if evaluation.dataset else {}
    facts = {key: value for key, value in described.items() if isinstance(value, str | int) and value != ""}
    lines += [f"Data: {', '.join(f'{key}: {value}' for key, value in facts.items())}."] if facts else []
    return [*lines, f"Seed {recipe.seed}."]


def _describe_start(step: Step, backbone: BackboneConfig) -> str:
    if step.before is not None:
        return f"step '{step.before}'"
    if step.weights is not None:
        return "published weights"
    return "the pretrained encoder" if getattr(backbone, "weights", None) else "random weights"


def _without_extractor(predictor: Predictor, config: Mapping[str, Any]) -> str:
    """Which networks are not in the folder, as a sentence after a space; empty if all are."""
    left_out = [
        name
        for name in predictor.names.pictures
        if isinstance(predictor.names.inputs[name], FeaturesConfig) and config["inputs"][name]["extractor"] is None
    ]
    if not left_out:
        return ""
    return (
        f" The network that computes the features of {' and '.join(left_out)} is not included: the model reads stored "
        f"features only, or pictures with --set inputs.{left_out[0]}.extractor.type=NAME."
    )


def _describe_limits(predictor: Predictor) -> str:
    """What the model cannot see."""
    if not predictor.names.pictures:
        return "The model sees no pictures."
    reads = [name for name in predictor.names.pictures if isinstance(predictor.names.inputs[name], FeaturesConfig)]
    if not reads:
        return "The network that sees pictures is a part of the model; it knows what its own data and these data show."
    random = [
        name
        for name in reads
        if '"weights": "random"' in json.dumps(predictor.recipe.inputs[name].model_dump(mode="json")["extractor"])
    ]
    if random:
        return "The network that computes features of pictures has random weights: it sees colours and edges only."
    return "The model sees pictures through the features of a network that was not trained with it."


KINDS = {
    "text": "texts",
    "label": "a label",
    "choice": "a choice",
    "region": "a region",
    "boxes": "boxes",
}
