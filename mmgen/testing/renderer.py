"""The conformance suite of renderers. The contract is in `mmgen.configs.RendererConfig`, `mmgen.parts.Renderer` and
`mmgen.cards.Card`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..cards import Card
from ..configs import RendererConfig
from ..data.seeds import resolve
from ..examples import Example, Generation, ResolvedExample
from ..parts import Renderer
from .suite import Suite
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
                f"{type(self).__name__} must define predictions(examples), which returns a mmgen.examples.Prediction "
                "for each example"
            )
        texts = [example.targets[0] if example.targets else "a text" for example in examples]
        return [Generation(example.id, text, (), -1.0) for example, text in zip(examples, texts, strict=True)]

    def renderer(self) -> Renderer:
        return self.config().build()

    def cards(self, examples: Sequence[Example] | None = None) -> list[tuple[ResolvedExample, Card]]:
        """Every example, with one of each input's alternatives, and its card."""
        renderer, some = self.renderer(), self.examples() if examples is None else examples
        pairs = zip(map(resolve, some), self.predictions(self.examples()), strict=True)
        cards = [(example, renderer.card(example, prediction)) for example, prediction in pairs]
        wrong = [card for _, card in cards if not isinstance(card, Card)]
        assert not wrong, f"card returns {wrong[0]!r:.60}; expected a mmgen.cards.Card"
        return cards

    def test_renders_labels_and_datasets(self) -> None:
        config = self.config()
        kinds = isinstance(config.renders, frozenset) and all(isinstance(kind, str) for kind in config.renders)
        assert kinds and config.renders, f"renders is {config.renders!r:.60}; expected a frozenset of kinds"
        for name in ("required_labels", "datasets"):
            value = getattr(config, name)
            texts = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
            assert texts, f"{name} is {value!r:.60}; expected a tuple of strings"

    def test_it_needs_no_settings(self) -> None:
        """No recipe names a renderer, so no recipe can set its fields."""
        required = [name for name, info in type(self.config()).model_fields.items() if info.is_required()]
        assert not required, f"fields without a default: {', '.join(required)}; no recipe can set them"

    def test_texts_are_those_of_the_example(self) -> None:
        for example, card in self.cards():
            for field, pieces in card.texts.items():
                text, read = "".join(piece.text for piece in pieces), example.inputs.get(field)
                assert text == read, (
                    f"card of '{example.id}': the pieces of '{field}' are {text!r:.60}; the example has {read!r:.60}"
                )

    def test_numbers_refer_to_objects(self) -> None:
        for example, card in self.cards():
            texts = [*card.texts.values(), *(choice.pieces for choice in card.choices)]
            most = max((number for pieces in texts for piece in pieces for number in piece.numbers), default=0)
            count = len(card.objects)
            assert most <= count, f"card of '{example.id}': a piece has the number {most}; there are {count} objects"

    def test_lines(self) -> None:
        renderer, examples = self.renderer(), self.examples()
        for example, prediction in zip(examples, self.predictions(examples), strict=True):
            line = renderer.line(resolve(example), prediction)
            plain = isinstance(line, str) and bool(line.strip()) and "\n" not in line
            assert plain, f"line of '{example.id}' is {line!r:.60}; expected one line of text"

    def test_without_labels_nothing_is_right_or_wrong(self) -> None:
        """Test splits may have no labels."""
        for example, card in self.cards([replace(example, labels={}, targets=()) for example in self.examples()]):
            marked = any(bar.right for bar in card.bars) or any(choice.right for choice in card.choices)
            unknown = card.right is None and card.right_box is None and not card.answers and not marked
            assert unknown, f"card of '{example.id}', which has no labels, says what is right"

    def test_is_deterministic(self) -> None:
        for (example, card), (_, again) in zip(self.cards(), self.cards(), strict=True):
            assert card == again, f"card of '{example.id}' differs the second time"
