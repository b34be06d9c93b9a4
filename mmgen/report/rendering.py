"""Renderers of a run's steps: one for each step, or JSON if none fits; samples for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from ..cards import Card, as_json
from ..configs import EmbedderConfig, RendererConfig
from ..data.seeds import resolve
from ..errors import PluginError
from ..examples import Example, Generation, Prediction, ResolvedExample
from ..parts import Renderer
from ..progress import padded
from ..recipe.tables import GENERATOR, Recipe
from ..registry import Part, installed

SAMPLES = 4

Answer = Generation | Prediction


class PlainRenderer(Renderer):
    """Shows predictions as JSON, and texts as they are: for steps that no renderer fits."""

    def card(self, example: ResolvedExample, prediction: Answer) -> Card:
        """The page shows a text itself."""
        if isinstance(prediction, Generation):
            return Card()
        return Card(line=as_json(prediction.value), confidence=prediction.score)

    def line(self, example: ResolvedExample, prediction: Answer) -> str:
        return prediction.text if isinstance(prediction, Generation) else as_json(prediction.value)


def step_renderer(recipe: Recipe, step: str) -> Renderer:
    """The renderer that fits a step best (`RendererConfig`). Raises PluginError if two fit equally well."""
    objective, kind = recipe.predicts(step) or (GENERATOR, "text")
    labels = () if objective == GENERATOR else recipe.objectives[objective].required_labels
    data = (recipe.scored_data(step) or recipe.data).type
    parts: dict[tuple[bool, int], list[Part]] = {}
    for part in installed().of_kind("renderer"):
        config = cast(type[RendererConfig], part.config)
        if kind in config.renders and {*config.required_labels} <= {*labels} and data in (config.datasets or [data]):
            parts.setdefault((bool(config.datasets), len(config.required_labels)), []).append(part)
    best = parts[max(parts)] if parts else []
    if len(best) > 1:
        names = " and ".join(f"'{part.name}' ({part.source})" for part in best)
        raise PluginError(f"step '{step}': two renderers fit: {names}; one must name its data sets (datasets)")
    return cast(type[RendererConfig], best[0].config).model_validate({}).build() if best else PlainRenderer()


def samples(
    answers: Sequence[Answer],
    examples: Sequence[Example],
    renderer: Renderer,
    inputs: Iterable[EmbedderConfig],
) -> str:
    """Some of a step's answers, one per example: predictions next to the texts that `inputs` read, texts next to the
    first of these or a reference text."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // SAMPLES)):
        example, answer = resolve(examples[index]), answers[index]
        line = renderer.line(example, answer)
        texts = list(dict.fromkeys(text for config in inputs for text in config.texts(example)))
        if isinstance(answer, Generation):
            texts = texts[:1] or [f"(people: {text})" for text in example.targets[:1]]
        lines.append(f"    {padded(line, 42)} <- {example.id}: {' | '.join(texts)}")
    return "\n".join(lines[:SAMPLES])
