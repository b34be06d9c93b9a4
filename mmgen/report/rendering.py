"""Renderers of a run's steps: one for each step, or JSON if none fits or one fails; samples for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar, cast

from ..cards import Card, as_json
from ..configs import EmbedderConfig, RendererConfig
from ..data.seeds import resolve
from ..errors import PluginError, blame
from ..examples import Example, Generation, Prediction, ResolvedExample
from ..progress import padded
from ..recipe.tables import GENERATOR, Recipe
from ..registry import Part, Registry, installed

Answer = Generation | Prediction
Shown = TypeVar("Shown", Card, str)


@dataclass
class StepRenderer:
    """Shows the answers of one step. An error of its renderer loses one card or line, never the page or the run.

    config  class of the renderer's config; None if no renderer fits the step
    notes   errors of the renderer, at most one line, for people to read
    """

    config: type[RendererConfig] | None = None
    notes: list[str] = field(default_factory=list)

    def card(self, example: ResolvedExample, answer: Answer) -> Card:
        """The renderer's card, or a plain card: a prediction as JSON; empty for a text, which the page shows itself."""
        plain = Card(line=as_json(answer.value), confidence=answer.score) if isinstance(answer, Prediction) else Card()
        return self._rendered("card", example, answer, plain)

    def line(self, example: ResolvedExample, answer: Answer) -> str:
        """The renderer's line, or a plain line: the text, or a prediction as JSON."""
        return self._rendered(
            "line", example, answer, as_json(answer.value) if isinstance(answer, Prediction) else answer.text
        )

    def _rendered(self, method: str, example: ResolvedExample, answer: Answer, plain: Shown) -> Shown:
        try:
            shown = getattr(self.config.model_validate({}).build(), method)(example, answer) if self.config else plain
            if not isinstance(shown, type(plain)):
                raise TypeError(f"returned {shown!r:.60}; expected {type(plain).__name__}")
            return shown
        except Exception as error:  # of any kind: renderers may come from third parties
            reason = f"{method} of '{example.id}': {blame(error) or repr(error)}; its answers are shown as JSON"
            self.notes[:] = self.notes or [
                f"renderer {self.config and self.config.model_fields['type'].default!r}: {reason}"
            ]
            return plain


def step_renderer(recipe: Recipe, step: str, registry: Registry | None = None) -> StepRenderer:
    """The renderer that fits a step best (`RendererConfig`). Raises PluginError if two fit equally well."""
    objective, kind = recipe.predicts(step) or (GENERATOR, "text")
    labels = () if objective == GENERATOR else recipe.objectives[objective].required_labels
    data = (recipe.scored_data(step) or recipe.data).type
    parts: dict[tuple[bool, int], list[Part]] = {}
    for part in (registry or installed()).of_kind("renderer"):
        config = cast(type[RendererConfig], part.config)
        if kind in config.renders and {*config.required_labels} <= {*labels} and data in (config.datasets or [data]):
            parts.setdefault((bool(config.datasets), len(config.required_labels)), []).append(part)
    best = parts[max(parts)] if parts else []
    if len(best) > 1:
        names = " and ".join(f"'{part.name}' ({part.source})" for part in best)
        raise PluginError(f"step '{step}': two renderers fit: {names}; one must name its data sets (datasets)")
    return StepRenderer(cast(type[RendererConfig], best[0].config) if best else None)


def samples(
    answers: Sequence[Answer],
    examples: Sequence[Example],
    renderer: StepRenderer,
    inputs: Iterable[EmbedderConfig],
    count: int = 4,
) -> str:
    """Some of a step's answers, one per example: predictions next to the texts that `inputs` read, texts next to the
    first of these or a reference text."""
    lines = []
    for index in range(0, len(examples), max(1, len(examples) // count)):
        example, answer = resolve(examples[index]), answers[index]
        line = renderer.line(example, answer)
        texts = list(dict.fromkeys(text for config in inputs for text in config.texts(example)))
        if isinstance(answer, Generation):
            texts = texts[:1] or [f"(people: {text})" for text in example.targets[:1]]
        lines.append(f"    {padded(line, 42)} <- {example.id}: {' | '.join(texts)}")
    return "\n".join([*lines[:count], *renderer.notes])
