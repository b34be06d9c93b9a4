"""Cards: an example each, with its pictures, what is read beside them, what each step answered, and what is right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..data.seeds import resolve
from ..errors import RunError
from ..features.mentions_config import BEHIND
from ..recipe.tables import GENERATOR, Recipe
from ..storage import generations, predictions
from ..storage.run_folder import RunFolder
from ..tensors import Example, Generation, Prediction
from .attention import AttentionPanel
from .frames import Box, Frame, outlines
from .mentions import Mention, Numbers, Piece, are_mentions
from .pictures import Shot
from .predicted import Truth, letter, summary_of, truth_of

PEOPLE = 6  # texts by people that a card shows

Answers = Mapping[str, "Generation | Prediction"]  # example id -> what a step answered


@dataclass(frozen=True)
class Gallery:
    """Examples of one data set, and what steps answered for them.

    number   of the galleries of a page, from 0
    total    how many examples there are; `examples` are those that are shown
    answers  step -> example id -> the best text, or the prediction
    """

    number: int
    name: str
    steps: tuple[str, ...]
    examples: Sequence[Example]
    total: int
    answers: Mapping[str, Answers]

    def key(self, example: Example) -> str:
        """What tells a card from all others of a page."""
        return f"{self.number}:{example.id}" if self.number else example.id


def answers_of(recipe: Recipe, folder: RunFolder, step: str) -> Answers:
    """What a step wrote or predicted. Raises RunError."""
    if recipe.makes_texts(step):
        return generations.best(folder.step(step))
    made, (_, kind) = predictions.read(folder.step(step)), recipe.predicts(step) or ("", "label")
    for number, one in enumerate(made, 1):
        try:
            summary_of(one, kind, Truth({}, box=(0.0, 0.0, 1.0, 1.0)))
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            place = f"{folder.step(step) / predictions.FILE}:{number}"
            raise RunError(f"{place}: damaged: no {kind}: {error}; delete the file and run again") from None
    return {one.id: one for one in made}


def card(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    shots: Sequence[Shot],
    boxes: Sequence[Box] | None = None,
) -> dict[str, Any]:
    """What the template shows of an example. `boxes`: of its first picture, where known."""
    frame = Frame(tuple(shots)) if shots else None
    truths = {step: _truth(recipe, step, example) for step in gallery.steps}
    answered = [
        _answer(recipe, step, made[example.id], panel, truths[step])
        for step, made in gallery.answers.items()
        if example.id in made
    ]
    chosen = {
        each["step"]: each["summary"].box for each in answered if each["summary"] and each["summary"].box is not None
    }
    right = next((truth.box for truth in truths.values() if truth.box is not None), None)
    alone, numbers = frame is not None and len(frame.shots) == 1, Numbers()
    drawn = outlines(chosen, right) if alone else []
    read, choices = _read(recipe, gallery, example, panel, truths, numbers), _choices(truths, numbers)
    return {
        "key": gallery.key(example),
        "id": example.id,
        "gallery": gallery.number,
        "frame": frame,
        "outlines": drawn,
        "regions": sum(map(len, panel.boxes.values())) if panel.weights else 0,
        "mentioned": numbers.placed(boxes) if alone and boxes is not None else [],
        "read": read,
        "choices": choices,
        "answers": answered,
        "people": _counted(example.targets),
        "right": [] if example.targets else _unsaid(truths, answered),
    }


def compact(panel: AttentionPanel, frame: Frame | None) -> dict[str, Any]:
    """What the page's script reads of an example's attention: boxes are relative to the frame."""
    found = {name: value for name, value in asdict(panel).items() if name not in ("words", "pictures")}
    if frame and len(frame.shots) > 1:
        pairs = {name: zip(boxes, panel.pictures[name], strict=True) for name, boxes in panel.boxes.items()}
        found["boxes"] = {name: [frame.placed(box, picture) for box, picture in each] for name, each in pairs.items()}
    return found


def _truth(recipe: Recipe, step: str, example: Example) -> Truth:
    predicts = recipe.predicts(step)
    if predicts is None or predicts[0] == GENERATOR:
        return Truth({})
    objective, kind = predicts
    names = dict.fromkeys((*recipe.objectives[objective].labels, *recipe.objectives[objective].fills()))
    return truth_of({name: example.labels[name] for name in names if name in example.labels}, kind)


def _answer(
    recipe: Recipe, step: str, made: Generation | Prediction, panel: AttentionPanel, truth: Truth
) -> dict[str, Any]:
    if isinstance(made, Prediction):
        predicts = recipe.predicts(step)
        assert predicts is not None  # it has just predicted
        return {"step": step, "words": [], "seen": False, "summary": summary_of(made, predicts[1], truth)}
    words = panel.words.get(step) or [made.text]
    seen = bool(panel.weights.get("last", {}).get(step))  # not so where nothing was written
    return {"step": step, "words": words, "seen": seen, "summary": None}


def _read(
    recipe: Recipe,
    gallery: Gallery,
    example: Example,
    panel: AttentionPanel,
    truths: Mapping[str, Truth],
    numbers: Numbers,
) -> list[dict[str, Any]]:
    """The texts among the inputs, each once, in words where attention is known; what a box is of is marked."""
    resolved = resolve(example)
    found: list[dict[str, Any]] = []
    for name, config in recipe.inputs.items():
        if any(name in recipe.steps[step].inputs for step in gallery.steps):
            units = [] if name in panel.boxes else panel.units.get(name, [])
            texts = [*config.texts(resolved)] or [
                value for field in config.reads if isinstance(value := resolved.inputs.get(field), str) and " " in value
            ]  # keys have no spaces
            text = "\n".join(texts)
            same = next((each for each in found if text and each["text"] == text), None)
            if same and not (units and same["units"]):  # two inputs that read one field
                same["called"] += f", {name}"
                same |= {"name": name, "units": units} if units else {}
            elif units or texts:
                mentions = _mentions(resolved, config.reads) if len(texts) == 1 and not units else ()
                parts = numbers.pieces(text, mentions)
                found.append({"name": name, "called": name, "text": text, "units": units, "parts": parts})
    spans = {truth.span for truth in truths.values() if truth.span}
    plain = [each for each in found if not each["units"]]
    if len(spans) == 1 and len(plain) == 1:
        ((first, end),), text = spans, plain[0]["text"]
        plain[0]["parts"] = [Piece(text[:first]), Piece(text[first:end], marked=True), Piece(text[end:])]
    return found


def _mentions(example: Example, fields: Sequence[str]) -> Sequence[Mention]:
    """The mentions of the text of one of these fields, where the example has them."""
    known = [example.shown(f"{field}{BEHIND}") for field in fields]
    return next((each for each in known if each and are_mentions(each)), ())


def _choices(truths: Mapping[str, Truth], numbers: Numbers) -> list[dict[str, Any]]:
    """The texts that steps chose from."""
    truth = next((truth for truth in truths.values() if truth.choices), Truth({}))
    mentions = truth.mentions or ((),) * len(truth.choices)
    return [
        {"letter": letter(place), "parts": numbers.pieces(text, own), "right": place == truth.choice}
        for place, (text, own) in enumerate(zip(truth.choices, mentions, strict=True))
    ]


def _counted(texts: Sequence[str]) -> dict[str, Any]:
    """Texts by people, each once, with how many wrote it."""
    counted = [*Counter(texts).items()]
    return {"texts": counted[:PEOPLE], "more": max(0, len(counted) - PEOPLE)}


def _unsaid(truths: Mapping[str, Truth], answered: Sequence[Mapping[str, Any]]) -> list[str]:
    """Answers that are right, best first, where the bars of some step do not show them all."""
    answers = next((truth.answers for truth in truths.values() if truth.answers), {})
    right = [answer for answer, weight in sorted(answers.items(), key=lambda pair: -pair[1]) if weight > 0]
    shown = [
        {bar.text for bar in each["summary"].bars} for each in answered if each["summary"] and each["summary"].bars
    ]
    return [] if all(set(right) <= each for each in shown) else right[:PEOPLE]
