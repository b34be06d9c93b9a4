"""Cards: an example each, with its pictures, what is read beside them, what each step answered, and what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..cards import Card, Piece, letter
from ..data.seeds import resolve
from ..recipe.tables import Recipe
from ..storage import generations, predictions
from ..storage.run_folder import RunFolder
from ..tensors import Example, Generation
from .attention import AttentionPanel
from .frames import Box, Frame, outlines, placed
from .pictures import Shot
from .rendering import Answer, StepRenderer

PEOPLE = 6  # texts by people that a card shows

Answers = Mapping[str, Answer]  # example id -> what a step answered


@dataclass(frozen=True)
class Gallery:
    """Examples of one data set, and what steps answered for them.

    number     of the galleries of a page, from 0
    total      how many examples there are; `examples` are those that are shown
    answers    step -> example id -> the best text, or the prediction
    renderers  step -> what shows its answers
    """

    number: int
    name: str
    steps: tuple[str, ...]
    examples: Sequence[Example]
    total: int
    answers: Mapping[str, Answers]
    renderers: Mapping[str, StepRenderer]

    def key(self, example: Example) -> str:
        """What tells a card from all others of a page."""
        return f"{self.number}:{example.id}" if self.number else example.id


def answers_of(recipe: Recipe, folder: RunFolder, step: str) -> Answers:
    """What a step wrote or predicted. Raises RunError."""
    predicts = recipe.predicts(step)
    if predicts is None or predicts[1] == "text":
        return generations.best(folder.step(step))
    return {prediction.id: prediction for prediction in predictions.read(folder.step(step), predicts[1])}


def card(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    shots: Sequence[Shot],
    boxes: Sequence[Box] | None = None,
) -> dict[str, Any]:
    """What the template shows of an example. `boxes`: of its first picture, where known."""
    frame, resolved = Frame(tuple(shots)) if shots else None, resolve(example)
    cards = {
        step: gallery.renderers[step].card(resolved, answers[example.id])
        for step, answers in gallery.answers.items()
        if example.id in answers
    }
    alone, shared = frame is not None and len(frame.shots) == 1, _shared(cards)
    chosen = {step: card.box for step, card in cards.items() if card.box is not None}
    objects = [boxes[place] if place < len(boxes) else None for place in shared.objects] if boxes is not None else []
    return {
        "key": gallery.key(example),
        "id": example.id,
        "gallery": gallery.number,
        "frame": frame,
        "outlines": outlines(chosen, shared.right_box) if alone else [],
        "regions": sum(map(len, panel.boxes.values())) if panel.weights else 0,
        "objects": [placed(number, box) for number, box in enumerate(objects, 1) if box is not None] if alone else [],
        "read": _read(recipe, gallery, resolved, panel, shared.texts),
        "choices": [
            {"letter": letter(place), "pieces": choice.pieces, "right": choice.right}
            for place, choice in enumerate(shared.choices)
        ],
        "answers": [_answer(step, gallery.answers[step][example.id], panel, card) for step, card in cards.items()],
        "people": _counted(example.targets),
        "right": [] if example.targets else _unsaid(shared.answers, [*cards.values()]),
    }


def compact(panel: AttentionPanel, frame: Frame | None) -> dict[str, Any]:
    """What the page's script reads of an example's attention: boxes are relative to the frame."""
    attention = {name: value for name, value in asdict(panel).items() if name not in ("words", "pictures")}
    if frame and len(frame.shots) > 1:
        pairs = {name: zip(boxes, panel.pictures[name], strict=True) for name, boxes in panel.boxes.items()}
        attention["boxes"] = {
            name: [frame.placed(box, picture) for box, picture in input_pairs] for name, input_pairs in pairs.items()
        }
    return attention


def _shared(cards: Mapping[str, Card]) -> Card:
    """What the cards of several steps say of their example, each thing once. Cards that number objects in another way
    than the first that numbers any are left out."""
    objects = next((card.objects for card in cards.values() if card.objects), ())
    alike = [card for card in cards.values() if card.objects in ((), objects)]
    return Card(
        right_box=next((card.right_box for card in alike if card.right_box is not None), None),
        answers=next((card.answers for card in alike if card.answers), ()),
        choices=next((card.choices for card in alike if card.choices), ()),
        texts={field: pieces for card in reversed(alike) for field, pieces in card.texts.items()},
        objects=objects,
    )


def _answer(step: str, answer: Answer, panel: AttentionPanel, card: Card) -> dict[str, Any]:
    if not isinstance(answer, Generation) or card.bars or card.line:
        return {"step": step, "words": [], "seen": False, "card": card}
    words = panel.words.get(step) or [answer.text]
    seen = bool(panel.weights.get("last", {}).get(step))  # not so where nothing was written
    return {"step": step, "words": words, "seen": seen, "card": None}


def _read(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    pieces: Mapping[str, Sequence[Piece]],
) -> list[dict[str, Any]]:
    """The texts among the inputs of a resolved example, each once, in words where attention is known; else in the
    `pieces` of their fields."""
    entries: list[dict[str, Any]] = []
    for name, config in recipe.inputs.items():
        if any(name in recipe.steps[step].inputs for step in gallery.steps):
            units = [] if name in panel.boxes else panel.units.get(name, [])
            texts = [*config.texts(example)] or [
                value for field in config.reads if isinstance(value := example.inputs.get(field), str) and " " in value
            ]  # keys have no spaces
            text = "\n".join(texts)
            same = next((entry for entry in entries if text and entry["text"] == text), None)
            if same and not (units and same["units"]):  # two inputs that read one field
                same["called"] += f", {name}"
                same |= {"name": name, "units": units} if units else {}
            elif units or texts:
                fitting = [pieces[field] for field in config.reads if _text(pieces.get(field, ())) == text]
                parts = fitting[0] if fitting else [Piece(text)]
                entries.append({"name": name, "called": name, "text": text, "units": units, "pieces": parts})
    return entries


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _counted(texts: Sequence[str]) -> dict[str, Any]:
    """Texts by people, each once, with how many wrote it."""
    counted = [*Counter(texts).items()]
    return {"texts": counted[:PEOPLE], "more": max(0, len(counted) - PEOPLE)}


def _unsaid(answers: Sequence[str], cards: Sequence[Card]) -> list[str]:
    """Right answers, where the bars of some step do not show them all."""
    bars = [{bar.text for bar in card.bars} for card in cards if card.bars]
    return [] if all({*answers} <= texts for texts in bars) else [*answers[:PEOPLE]]
