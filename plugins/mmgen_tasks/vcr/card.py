"""VCR's cards: the choices with the right choice marked, and the words of the texts that name objects."""

from __future__ import annotations

from dataclasses import replace

from mmgen_vision.cards import NamedObjects, label_card
from mmgen_vision.truths import right_label

from mmgen.cards import Bar, Card, Choice, letter
from mmgen.examples import Generation, Prediction, ResolvedExample
from mmgen.parts import Renderer


class ChoiceCard(Renderer):
    """One bar per choice, and the choices' texts (labels "choices", "choice" and "choice_mentions")."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        labels, best = example.labels, prediction.value["choice"]
        texts, right, named = labels.get("choices", ()), labels.get("choice"), NamedObjects()
        mentions = labels.get("choice_mentions") or [()] * len(texts)
        questions = named.texts(example)
        choices = [named.pieces(text, places) for text, places in zip(texts, mentions, strict=True)]
        shares = prediction.value["probabilities"]
        return Card(
            bars=tuple(Bar(letter(place), share, place == best, place == right) for place, share in enumerate(shares)),
            right=None if right is None else best == right,
            choices=tuple(Choice(pieces, place == right) for place, pieces in enumerate(choices)),
            texts=questions,
            objects=named.objects,
        )

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        texts, best = example.labels.get("choices"), prediction.value["choice"]
        return texts[best] if texts else letter(best)


class NamedTextsCard(Renderer):
    """The objects that VCR's texts name, for a step that generates text or classifies choices (label "truth")."""

    def card(self, example: ResolvedExample, prediction: Prediction | Generation) -> Card:
        named = NamedObjects()
        texts = named.texts(example)
        if isinstance(prediction, Generation):
            return Card(texts=texts, objects=named.objects)
        return replace(label_card(prediction, right_label(example)), texts=texts, objects=named.objects)

    def line(self, example: ResolvedExample, prediction: Prediction | Generation) -> str:
        return prediction.text if isinstance(prediction, Generation) else prediction.value["label"]
