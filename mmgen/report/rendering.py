"""Renderers of a run's steps: chooses a renderer for each step, and falls back to JSON if none fits or one fails."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from ..cards import Card, as_json
from ..configs import RendererConfig
from ..errors import PluginError, blame
from ..examples import Generation, Prediction, ResolvedExample
from ..parts import Renderer
from ..recipe.tables import GENERATOR, Recipe
from ..registry import OURS, Part, Registry, installed

Answer = Generation | Prediction


@dataclass
class StepRenderer:
    """Shows the answers of one step. An error of its renderer loses one card or line, never the page or the run.

    config  class of the renderer's config; None if no renderer fits the step
    notes   errors of the renderer, at most one line, for people to read
    """

    config: type[RendererConfig] | None = None
    notes: list[str] = field(default_factory=list)
    _built: Renderer | None = None

    def card(self, example: ResolvedExample, answer: Answer) -> Card:
        """The renderer's card, or a plain card: a prediction as JSON; empty for a text, which the page shows itself."""
        try:
            if renderer := self._renderer():
                card = renderer.card(example, answer)
                if not isinstance(card, Card):
                    raise ValueError(f"returned {card!r:.60}; expected a mmgen.cards.Card")
                return card
        except Exception as error:  # of any kind: renderers may come from third parties
            self._note_failure(error, "card", example)
        return Card(line=as_json(answer.value), confidence=answer.score) if isinstance(answer, Prediction) else Card()

    def line(self, example: ResolvedExample, answer: Answer) -> str:
        """The renderer's line, or a plain line: the text, or a prediction as JSON."""
        try:
            if renderer := self._renderer():
                line = renderer.line(example, answer)
                if not isinstance(line, str):
                    raise ValueError(f"returned {line!r:.60}; expected a string")
                return line
        except Exception as error:
            self._note_failure(error, "line", example)
        return as_json(answer.value) if isinstance(answer, Prediction) else answer.text

    def _renderer(self) -> Renderer | None:
        if self._built is None and self.config is not None:
            self._built = self.config.model_validate({}).build()
        return self._built

    def _note_failure(self, error: Exception, method: str, example: ResolvedExample) -> None:
        if not self.notes:
            text = " ".join(str(error).split())
            reason = text if isinstance(error, ValueError) and text else f"{type(error).__name__}: {text}"
            name = self.config.model_fields["type"].default if self.config else ""
            self.notes.append(
                f"renderer '{name}': {method} of '{example.id}': {blame(error) or reason}; answers that the renderer "
                "cannot show are shown as JSON"
            )


def step_renderer(recipe: Recipe, step: str, registry: Registry | None = None) -> StepRenderer:
    """The renderer that fits a step best (`RendererConfig`). Raises PluginError if two fit equally well."""
    objective, kind = recipe.predicts(step) or (GENERATOR, "text")
    labels = () if objective == GENERATOR else recipe.objectives[objective].required_labels
    data = (recipe.scored_data(step) or recipe.data).type
    ranks: dict[Part, tuple[bool, int]] = {}
    for part in (registry or installed()).of_kind("renderer"):
        config = cast(type[RendererConfig], part.config)
        if kind in config.renders and {*config.required_labels} <= {*labels} and data in (config.datasets or [data]):
            ranks[part] = (bool(config.datasets), len(config.required_labels))
    best = [part for part, rank in ranks.items() if rank == max(ranks.values())]
    if len(best) > 1:
        names = " and ".join(f"'{part.name}' ({part.source})" for part in best)
        rivals = [f"'{part.name}'" for part in best if part.source.distribution != OURS]
        advice = f"{rivals[0]} must name its data sets (datasets)" if len(rivals) == 1 else "uninstall one of them"
        raise PluginError(f"step '{step}': two renderers fit kind '{kind}' of data '{data}': {names}; {advice}")
    return StepRenderer(cast(type[RendererConfig], best[0].config) if best else None)
