"""The conformance suite of renderers. The contract is in `mmgen.configs.RendererConfig`, `mmgen.parts.Renderer` and
`mmgen.cards.Card`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..cards import Card
from ..configs import RendererConfig
from ..data.seeds import resolve
from ..examples import Example, Generation
from .suite import Suite, assert_type
from .toy import Toy


class RendererSuite(Suite[RendererConfig]):
    """What the page and the terminal rely on. `config()` returns a `RendererConfig`, `predictions()` the predictions of
    `examples()`."""

    def examples(self) -> Sequence[Example]:
        """Examples with the labels that the renderer reads; by default the toy data set's, which have texts."""
        return Toy().build().split("train")

    def predictions(self, examples: Sequence[Example]) -> Sequence[Any]:
        """One prediction for each example, some right and some wrong; by default texts."""
        if "text" not in self.config().renders:
            raise NotImplementedError(
                "define predictions(examples), which returns a mmgen.examples.Prediction for each example"
            )
        return [Generation(example.id, " ".join(example.targets[:1]) or "a text", (), -1.0) for example in examples]

    def test_declarations(self) -> None:
        """No recipe names a renderer, so no recipe can set its fields."""
        config = self.config()
        assert isinstance(config.renders, frozenset) and config.renders, "renders must be a frozenset of kinds"
        tuples = isinstance(config.required_labels, tuple) and isinstance(config.datasets, tuple)
        assert tuples, "required_labels and datasets must be tuples of strings"
        required = [name for name, info in type(config).model_fields.items() if info.is_required()]
        assert not required, f"fields without a default: {', '.join(required)}; no recipe can set them"

    def test_cards_and_lines(self) -> None:
        """Pieces are the example's texts, numbers those of objects; without labels nothing is right or wrong."""
        renderer, examples = self.buildable().build(), self.examples()
        for example, prediction in zip(examples, self.predictions(examples), strict=True):
            line = renderer.line(resolve(example), prediction)
            plain = isinstance(line, str) and line.strip() and "\n" not in line
            assert plain, f"line of '{example.id}' is {line!r:.60}; expected one line of text"
            resolved, blank = resolve(example), resolve(replace(example, labels={}, targets=()))
            card, again, unknown = (renderer.card(e, prediction) for e in (resolved, resolved, blank))
            assert_type(card, Card, "card")
            place = f"card of '{example.id}'"
            assert card == again, f"{place} differs the second time"
            for field, shown in card.texts.items():
                text, read = "".join(piece.text for piece in shown), resolved.inputs.get(field)
                assert text == read, f"{place}: the pieces of '{field}' are {text!r:.60}; the example has {read!r:.60}"
            pieces = [piece for text in (*card.texts.values(), *(c.pieces for c in card.choices)) for piece in text]
            most = max((number for piece in pieces for number in piece.numbers), default=0)
            assert most <= len(card.objects), (
                f"{place}: a piece has the number {most}; there are {len(card.objects)} objects"
            )
            marked = any(bar.right for bar in unknown.bars) or any(choice.right for choice in unknown.choices)
            silent = not marked and unknown.right is None and unknown.right_box is None and not unknown.answers
            assert silent, f"{place}, which has no labels, says what is right"
