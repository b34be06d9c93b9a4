"""Renderers of a run's steps: chooses a renderer for each step, and falls back to JSON if none fits or one fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from ..cards import Card, as_json
from ..configs import RendererConfig
from ..errors import PluginError, blame
from ..examples import Generation, Prediction, ResolvedExample
from ..recipe.tables import GENERATOR, Recipe
from ..registry import Part, Registry, installed

Answer = Generation | Prediction


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
        return cast(Card, self._rendered("card", example, answer, plain))

    def line(self, example: ResolvedExample, answer: Answer) -> str:
        """The renderer's line, or a plain line: the text, or a prediction as JSON."""
        plain = as_json(answer.value) if isinstance(answer, Prediction) else answer.text
        return cast(str, self._rendered("line", example, answer, plain))

    def _rendered(self, method: str, example: ResolvedExample, answer: Answer, plain: Any) -> Any:
        if self.config is None:
            return plain
        try:
            shown = getattr(self.config.model_validate({}).build(), method)(example, answer)
            if not isinstance(shown, type(plain)):
                raise TypeError(f"returned {shown!r:.60}; expected {type(plain).__name__}")
            return shown
        except Exception as error:  # of any kind: renderers may come from third parties
            if not self.notes:
                name, reason = self.config.model_fields["type"].default, blame(error) or repr(error)
                self.notes.append(
                    f"renderer '{name}': {method} of '{example.id}': {reason}; its answers are shown as JSON"
                )
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
