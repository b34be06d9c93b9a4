"""The galleries of the page: examples of each data set with the answers of the steps, as cards with scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..attention_maps import WordAttention, all_layers, last_layer, word_attention
from ..cards import Card, Piece
from ..data.datasets import ScoredOn
from ..data.seeds import resolve
from ..errors import MmgenError
from ..evaluation import score
from ..evaluation.answers import read_answers
from ..examples import Example, ResolvedExample
from ..model import Model
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.run_folder import RunFolder
from . import pictures, table
from .rendering import Answer, step_renderer

Load = Callable[[str], Model]  # loads the model of a step

BATCH = 16
LAYERS = {"last": last_layer, "all": all_layers}
KINDS = ("units", "boxes", "pictures", "words", "weights")  # of what is known about the attention for an example

# The attention of all steps for one example, as the page's script reads it:
#   units     input -> names of its regions, or its words
#   boxes     input -> its regions' boxes, if the input has boxes
#   pictures  input -> index of each region's picture, from 0; empty for a single picture
#   words     step -> the generated words
#   weights   "last" or "all" layers -> step -> one row per word: its inputs' units, special tokens, generated words;
#             in ten-thousandths of the word's attention
Looks = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class GalleryMaker:
    """Makes the galleries of a run. `load`: loads the model of a step.

    A gallery has the examples of one data set with the answers of the steps, as the template reads them:

    number   its index on the page, from 0
    steps    the names of the steps; `total`: the size of the split
    cards    those of one picture together, unless boxes are drawn on it
    looks    card -> attention
    scores   step -> metric -> card -> value
    notes    on what is missing
    """

    recipe: Recipe
    folder: RunFolder
    datasets: ScoredOn
    load: Load
    progress: Progress

    def galleries(self, steps: Sequence[str], shown: int) -> list[dict[str, Any]]:
        """One gallery per data set on which these steps are scored, with `shown` examples in total."""
        steps_by_data: dict[str, list[str]] = {}
        for step in steps:
            config = self.recipe.scored_data(step)
            steps_by_data.setdefault(config.model_dump_json() if config else "", []).append(step)
        count = max(1, shown // len(steps_by_data))
        return [self._gallery(number, steps, count) for number, steps in enumerate(steps_by_data.values())]

    def _gallery(self, number: int, steps: Sequence[str], count: int) -> dict[str, Any]:
        dataset, split = self.datasets.dataset_of(steps[0]), self.datasets.scored_by(steps[0])
        count = min(count, len(split))
        places = {f"{number}:" * bool(number) + split[i].id: i for i in (n * len(split) // count for n in range(count))}
        examples = {key: split[place] for key, place in places.items()}
        found, pictureless = pictures.find(dataset, [*examples.values()])
        shots, unreadable = pictures.thumbnails(found)
        answers = {step: {a.id: a for a in read_answers(self.recipe, step, self.folder.step(step))} for step in steps}
        looks, silent = self._attention([*examples.values()], answers)
        renderers = {step: step_renderer(self.recipe, step) for step in steps}
        cards: dict[object, list[dict[str, Any]]] = {}
        for key, example in examples.items():
            group = found[example.id] if example.id in shots else ()
            known = {step: of_step[example.id] for step, of_step in answers.items() if example.id in of_step}
            shown = {step: renderers[step].card(resolve(example), answer) for step, answer in known.items()}
            card = self._card(example, known, shown, looks[example.id], group[0].boxes or () if group else None)
            card |= {"key": key, "gallery": number, "shots": shots.get(example.id, [])}
            alone = not group or card["outlines"] or card["objects"]
            cards.setdefault(key if alone else tuple(picture.key for picture in group), []).append(card)
        return {
            "number": number,
            "name": table.data_name(self.recipe, steps[0], dataset),
            "steps": steps,
            "total": len(split),
            "cards": [*cards.values()],
            "looks": {key: looks[example.id] for key, example in examples.items()},
            "scores": self._scores(steps, places),
            "notes": tuple(filter(None, (pictureless, unreadable, silent))),
        }

    def _attention(
        self, examples: Sequence[Example], answers: Mapping[str, Mapping[str, Any]]
    ) -> tuple[dict[str, Looks], str]:
        """Attention of every generating step, by example id; and a note on steps without attention, or ""."""
        looks: dict[str, Looks] = {e.id: {kind: {} for kind in KINDS} for e in examples}
        writing, reasons = [step for step in answers if self.recipe.makes_texts(step)], list[str]()
        with self.progress.task("report: attention", len(examples) * len(writing), "texts") as advance:
            for step in writing:
                inputs = self.recipe.steps[step].inputs
                try:
                    model = self.load(step).eval()
                    for first in range(0, len(examples), BATCH):
                        part = [resolve(example) for example in examples[first : first + BATCH]]
                        written = [answers[step][e.id].tokens[: model.generator.max_tokens] for e in part]
                        attended = word_attention(model, part, inputs, written, LAYERS)
                        for example, attention in zip(part, attended, strict=True):
                            _add_attention(looks[example.id], step, attention)
                        advance(len(part))
                except (MmgenError, NotImplementedError, RuntimeError, LookupError) as error:
                    reasons.append(f"No attention for '{step}': {error}")
        return looks, " ".join(reasons)

    def _card(
        self,
        example: Example,
        answers: Mapping[str, Answer],
        cards: Mapping[str, Card],
        looks: Looks,
        boxes: Sequence[Sequence[float]] | None,
    ) -> dict[str, Any]:
        """The template's data of one example. `boxes`: those of its first picture, on which boxes are drawn."""
        common: dict[str, Any] = {
            name: next((value for card in cards.values() if (value := getattr(card, name))), ())
            for name in ("right_box", "answers", "choices", "texts", "objects")
        }
        outlines = [("", common["right_box"]), *((step, card.box) for step, card in cards.items())]
        listed = [{bar.text for bar in card.bars} for card in cards.values() if card.bars]
        known = example.targets or all({*common["answers"]} <= texts for texts in listed)
        words = looks.pop("words")  # they are in the HTML
        return {
            "id": example.id,
            "outlines": [(step, box) for step, box in outlines if box and boxes is not None],
            "objects": [(n, boxes[i]) for n, i in enumerate(common["objects"], 1) if boxes and i < len(boxes)],
            "read": [*self._texts(resolve(example), [*answers], looks, common["texts"])],
            "choices": common["choices"],
            "cards": cards,
            "words": {step: words.get(step) or [answer.value] for step, answer in answers.items()},
            "seen": looks["weights"].get("last", {}),  # an empty text has no attention
            "people": [*Counter(example.targets).items()],
            "right": () if known else common["answers"],
        }

    def _texts(
        self, example: ResolvedExample, steps: Sequence[str], looks: Looks, pieces: Mapping[str, Sequence[Piece]]
    ) -> Iterator[dict[str, Any]]:
        """The texts among the inputs of these steps: as words if their attention is known, else as the `pieces` of
        their fields."""
        for name, config in self.recipe.inputs.items():
            text = "\n".join(config.texts(example))
            units = () if name in looks["boxes"] else looks["units"].get(name, ())
            if (text or units) and any(name in self.recipe.steps[step].inputs for step in steps):
                known = (pieces[field] for field in config.fields if field in pieces)
                fitting = (parts for parts in known if "".join(part.text for part in parts) == text)
                yield {"name": name, "units": units, "pieces": next(fitting, [Piece(text)])}

    def _scores(self, steps: Sequence[str], places: Mapping[str, int]) -> dict[str, dict[str, dict[str, float]]]:
        """Step -> metric -> card -> value. `places`: of the cards in the split."""
        return {
            step: {
                name: {key: round(value, 1) for key, place in places.items() if (value := column[place]) is not None}
                for name, column in score.read(self.folder.step(step)).per_example.items()
            }
            for step in steps
        }


def _add_attention(looks: Looks, step: str, attention: WordAttention) -> None:
    looks["words"][step] = attention.words
    for name, units in attention.units.items():
        looks["units"][name] = units.names
        if units.boxes:
            looks["pictures"][name] = units.pictures
            looks["boxes"][name] = [[round(number, 3) for number in box] for box in units.boxes]
    for layers, weights in attention.weights.items():
        looks["weights"].setdefault(layers, {})[step] = (10_000 * weights).round().int().tolist()
