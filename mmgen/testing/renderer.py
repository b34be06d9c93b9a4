"""The conformance suite of renderers."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..cards import Card, checked_card
from ..configs import Gives, RendererConfig
from ..data.seeds import resolve
from ..parts import Renderer
from ..tensors import Example, Generation
from .suite import Suite, expect, fail
from .toy import Toy

CONFIG, RENDERER, CARD = "mmgen.configs.RendererConfig", "mmgen.parts.Renderer", "mmgen.cards.Card"


class RendererSuite(Suite[RendererConfig]):
    """What the page and the terminal rely on. `config()` returns a `RendererConfig`, `predictions()` what it shows of
    `examples()`."""

    def examples(self) -> Sequence[Example]:
        """Examples with the labels that the renderer reads; by default the toy data set's, which have texts."""
        return Toy().build().split("train")

    def predictions(self, examples: Sequence[Example]) -> Sequence[Any]:
        """One prediction for each example, some right and some wrong; by default texts."""
        if "text" not in self.config().renders:
            raise NotImplementedError(
                f"{type(self).__name__} must define predictions(examples), which returns a mmgen.tensors.Prediction "
                "for each example"
            )
        texts = [example.targets[0] if example.targets else "a text" for example in examples]
        return [Generation(example.id, text, (), -1.0) for example, text in zip(examples, texts, strict=True)]

    def renderer(self) -> Renderer:
        return self.config().build()

    def cards(self, examples: Sequence[Example] | None = None) -> list[tuple[Example, Card]]:
        """Every example, with one of each input's alternatives, and its card. Fails for a card that a page cannot
        show."""
        renderer, some = self.renderer(), self.examples() if examples is None else examples
        shown = []
        for example, prediction in zip(map(resolve, some), self.predictions(self.examples()), strict=True):
            try:
                shown.append((example, checked_card(renderer.card(example, prediction))))
            except ValueError as error:
                fail(f"card of '{example.id}': {error}", CARD)
        return shown

    def test_what_it_is_for(self) -> None:
        config, kinds = self.config(), typing.get_args(Gives)
        expect(
            isinstance(config.renders, frozenset) and config.renders and config.renders <= set(kinds),
            f"renders is {config.renders!r:.60}; expected a frozenset of some of {', '.join(kinds)}",
            CONFIG,
        )
        for name in ("labels", "datasets"):
            value = getattr(config, name)
            texts = isinstance(value, tuple) and all(isinstance(text, str) for text in value)
            expect(texts, f"{name} is {value!r:.60}; expected a tuple of strings", CONFIG)

    def test_it_needs_no_settings(self) -> None:
        """No recipe names a renderer, so nobody can give it any."""
        required = [name for name, info in type(self.config()).model_fields.items() if info.is_required()]
        expect(not required, f"fields without a default: {', '.join(required)}; no recipe can set them", CONFIG)

    def test_texts_are_those_of_the_example(self) -> None:
        for example, card in self.cards():
            for field, pieces in card.texts.items():
                text = "".join(piece.text for piece in pieces)
                expect(
                    text == example.inputs.get(field),
                    f"card of '{example.id}': the pieces of '{field}' are {text!r:.60}, and the example has "
                    f"{example.inputs.get(field)!r:.60}",
                    CARD,
                )

    def test_numbers_mean_objects(self) -> None:
        for example, card in self.cards():
            pieces = [*(piece for some in card.texts.values() for piece in some)]
            pieces += [piece for choice in card.choices for piece in choice.pieces]
            most = max((number for piece in pieces for number in piece.numbers), default=0)
            expect(
                most <= len(card.objects),
                f"card of '{example.id}': a piece has the number {most}, and there are {len(card.objects)} objects",
                CARD,
            )

    def test_lines(self) -> None:
        renderer, examples = self.renderer(), self.examples()
        for example, prediction in zip(examples, self.predictions(examples), strict=True):
            line = renderer.line(resolve(example), prediction)
            expect(
                isinstance(line, str) and line.strip() and "\n" not in line,
                f"line of '{example.id}' is {line!r:.60}; expected one line of text",
                RENDERER,
            )

    def test_without_labels_nothing_is_right_or_wrong(self) -> None:
        """Of test splits nobody knows the labels."""
        for example, card in self.cards([replace(example, labels={}, targets=()) for example in self.examples()]):
            marked = any(item.right for item in (*card.bars, *card.choices))
            expect(
                card.right is None and card.right_box is None and not card.answers and not marked,
                f"card of '{example.id}', which has no labels, says what is right",
                RENDERER,
            )

    def test_the_same_twice(self) -> None:
        for (example, card), (_, other) in zip(self.cards(), self.cards(), strict=True):
            expect(card == other, f"card of '{example.id}' differs the second time", RENDERER)
