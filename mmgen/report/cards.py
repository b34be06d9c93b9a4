"""Cards of the page, one per example: its pictures and texts, each step's answer (read here), the correct answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..cards import Card, Piece, letter
from ..data.seeds import resolve
from ..evaluation.answers import read_answers
from ..examples import Example, Generation
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from .attention import AttentionPanel
from .frames import Box, Frame, numbered_outline, outlines
from .pictures import Shot
from .rendering import Answer, StepRenderer

MAX_REFERENCES = 6  # reference texts or answers on a card

Answers = Mapping[str, Answer]  # example id -> a step's answer


@dataclass(frozen=True)
class Gallery:
    """Examples of one data set with the answers of the steps.

    number     index of the gallery on the page, from 0
    examples   the examples on the page
    total      size of the split
    answers    step -> example id -> the best text, or the prediction
    renderers  step -> the renderer of its answers
    """

    number: int
    name: str
    steps: tuple[str, ...]
    examples: Sequence[Example]
    total: int
    answers: Mapping[str, Answers]
    renderers: Mapping[str, StepRenderer]

    def key(self, example: Example) -> str:
        """The card's key, unique on the page."""
        return f"{self.number}:{example.id}" if self.number else example.id


def answers_of(recipe: Recipe, folder: RunFolder, step: str) -> Answers:
    """The texts or predictions of a step. Raises RunError."""
    return {answer.id: answer for answer in read_answers(recipe, step, folder.step(step))}


def card(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    shots: Sequence[Shot],
    boxes: Sequence[Box] | None = None,
) -> dict[str, Any]:
    """The template's data of one example. `boxes`: the boxes of its first picture, if known."""
    frame, resolved = Frame(tuple(shots)) if shots else None, resolve(example)
    cards = {
        step: gallery.renderers[step].card(resolved, answers[example.id])
        for step, answers in gallery.answers.items()
        if example.id in answers
    }
    single, shared = frame is not None and len(frame.shots) == 1, _shared_card(cards)
    step_boxes = {step: card.box for step, card in cards.items() if card.box is not None}
    objects = [boxes[place] if place < len(boxes) else None for place in shared.objects] if boxes is not None else []
    return {
        "key": gallery.key(example),
        "id": example.id,
        "gallery": gallery.number,
        "frame": frame,
        "outlines": outlines(step_boxes, shared.right_box) if single else [],
        "attended": bool(panel.weights),
        "objects": [numbered_outline(number, box) for number, box in enumerate(objects, 1) if box is not None]
        if single
        else [],
        "read": _input_texts(recipe, gallery, resolved, panel, shared.texts),
        "choices": [
            {"letter": letter(place), "pieces": choice.pieces, "right": choice.right}
            for place, choice in enumerate(shared.choices)
        ],
        "answers": [
            _answer_of_step(step, gallery.answers[step][example.id], panel, card) for step, card in cards.items()
        ],
        "people": _count_texts(example.targets),
        "right": [] if example.targets else _unlisted_answers(shared.answers, [*cards.values()]),
    }


def compact(panel: AttentionPanel, frame: Frame | None) -> dict[str, Any]:
    """An example's attention for the page's script, with boxes relative to the frame."""
    attention = {name: value for name, value in asdict(panel).items() if name not in ("words", "pictures")}
    if frame and len(frame.shots) > 1:
        pairs = {name: zip(boxes, panel.pictures[name], strict=True) for name, boxes in panel.boxes.items()}
        attention["boxes"] = {
            name: [frame.place(box, picture) for box, picture in input_pairs] for name, input_pairs in pairs.items()
        }
    return attention


def _shared_card(cards: Mapping[str, Card]) -> Card:
    """One card with the facts about the example that the steps' cards share. The first card with numbered objects sets
    their numbers; cards with different numbers are left out."""
    objects = next((card.objects for card in cards.values() if card.objects), ())
    matches = [card for card in cards.values() if card.objects in ((), objects)]
    return Card(
        right_box=next((card.right_box for card in matches if card.right_box is not None), None),
        answers=next((card.answers for card in matches if card.answers), ()),
        choices=next((card.choices for card in matches if card.choices), ()),
        texts={field: pieces for card in reversed(matches) for field, pieces in card.texts.items()},
        objects=objects,
    )


def _answer_of_step(step: str, answer: Answer, panel: AttentionPanel, card: Card) -> dict[str, Any]:
    if not isinstance(answer, Generation) or card.bars or card.line:
        return {"step": step, "words": [], "seen": False, "card": card}
    words = panel.words.get(step) or [answer.text]
    has_attention = bool(panel.weights.get("last", {}).get(step))  # an empty text has none
    return {"step": step, "words": words, "seen": has_attention, "card": None}


def _input_texts(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    pieces: Mapping[str, Sequence[Piece]],
) -> list[dict[str, Any]]:
    """The texts among the inputs of a resolved example, without repeats: as words if their attention is known, else as
    the `pieces` of their fields."""
    entries: list[dict[str, Any]] = []
    for name, config in recipe.inputs.items():
        if any(name in recipe.steps[step].inputs for step in gallery.steps):
            units = [] if name in panel.boxes else panel.units.get(name, [])
            texts = [*config.texts(example)]
            text = "\n".join(texts)
            same = next((entry for entry in entries if text and entry["text"] == text), None)
            if same and not (units and same["units"]):  # two inputs read one field
                same["called"] += f", {name}"
                same |= {"name": name, "units": units} if units else {}
            elif units or texts:
                matches = [pieces[field] for field in config.fields if field in pieces and _join(pieces[field]) == text]
                parts = matches[0] if matches else [Piece(text)]
                entries.append({"name": name, "called": name, "text": text, "units": units, "pieces": parts})
    return entries


def _join(pieces: Sequence[Piece]) -> str:
    """The text of a card that is given in pieces."""
    return "".join(piece.text for piece in pieces)


def _count_texts(texts: Sequence[str]) -> dict[str, Any]:
    """The distinct texts that people wrote, with their counts."""
    counts = [*Counter(texts).items()]
    return {"texts": counts[:MAX_REFERENCES], "more": max(0, len(counts) - MAX_REFERENCES)}


def _unlisted_answers(answers: Sequence[str], cards: Sequence[Card]) -> list[str]:
    """The correct answers, unless the bars of every step show all of them."""
    bars = [{bar.text for bar in card.bars} for card in cards if card.bars]
    return [] if all({*answers} <= texts for texts in bars) else [*answers[:MAX_REFERENCES]]
