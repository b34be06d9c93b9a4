"""Grounding (VisualBERT, section 3): every attention head as a classifier of the region that a caption word names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from mmgen_vision.boxes import SLACK, Box, iou
from torch import Tensor

from mmgen.attention_maps import collate, input_columns
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.oom import ADVICE_SMALLER, OomRetry
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep
from mmgen.sequence import slots_between

from . import Grounding, parses, phrases
from .heads import Tally, best_heads, draw, draw_relations, relations_table, summary
from .run_steps import over_steps, picture_and_text, readable, write_json

ENTITIES = "entities"
RELATIONS = 10  # number of relations in the table, the most common ones, as in VisualBERT's table 2


@dataclass(frozen=True)
class Query:
    """Slots of a caption, and the boxes that they should attend to. `name`: ENTITIES, or a relation."""

    name: str
    slots: tuple[int, ...]
    boxes: tuple[Box, ...]


class GroundingProbe(Probe):
    """Writes grounding.json, every head's accuracy, grounding.svg, and relations-STEP.svg for parsed captions; plots
    also as PNG."""

    def __init__(self, config: Grounding) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        parsed = parses.read(self.config.parses) if self.config.parses else {}
        tallies_by_step, notes = over_steps(subject, lambda step, model: self._tally_step(step, model, subject, parsed))
        by_name = {step.name: step for step in subject.steps}
        entities = {step: tallies.pop(ENTITIES) for step, tallies in tallies_by_step.items()}
        plots = {
            "Entity grounding by layer": draw(
                [(by_name[step], tally) for step, tally in entities.items()], self.config.active_threshold, out
            )
        }
        tables = {
            "Entity grounding, % of phrases: best heads": best_heads(
                entities, self.config.active_threshold, self.config.top_heads
            )
        }
        relations = {
            step: dict(sorted(tallies.items(), key=lambda pair: -pair[1].count)[:RELATIONS])
            for step, tallies in tallies_by_step.items()
        }
        for step, tallies in relations.items():
            if tallies:
                tables[f"Grounding by relation, % of words: best active heads of {step}"] = relations_table(
                    tallies, self.config.active_threshold
                )
                plots[f"Grounding by relation of {step}"] = draw_relations(
                    by_name[step], tallies, self.config.active_threshold, out
                )
        if parsed and not any(relations.values()):
            notes.append(f"no sentence of {self.config.parses} matches a caption with known phrases")
        write_json(
            out / "grounding.json",
            {
                step: summary({ENTITIES: entities[step], **tallies_by_step[step]}, self.config.active_threshold)
                for step in tallies_by_step
            },
        )
        notes += [
            f"a head is active when over {100 * self.config.active_threshold:g} % of its attention goes to regions; "
            "heads are named layer-head, from 1",
            f"correct: the most attended region overlaps a box of the phrase (IoU {self.config.iou_threshold:g}); "
            "'surest region': the detector's most confident region instead; 'any region': a random region; 'at best': "
            "phrases with at least one correct region",
        ]
        if not any(tally.scored for tally in entities.values()):
            notes.append(
                "the regions have no confidences; the first region counts as the surest, because detectors sort them"
            )
        return ProbeResult(tables, plots, tuple(notes))

    def _tally_step(
        self, step: TrainedStep, model: Any, subject: ProbeInput, parsed: parses.Parses
    ) -> dict[str, Tally]:
        """Tallies of a step's heads for entities and for every relation. Raises UnavailableError, DataError."""
        inputs = readable(model, subject.examples[0], step.inputs)
        picture, text = picture_and_text(model, subject.examples[0], inputs)
        if picture is None or text is None:
            raise UnavailableError(
                f"reads {' and '.join(step.inputs)}; grounding needs regions with boxes and a caption"
            )
        captions = self._parse_captions(model, subject.examples, picture, text)
        tallies: dict[str, Tally] = {ENTITIES: Tally()}
        halving = OomRetry(
            f"grounding: {step.name}",
            ADVICE_SMALLER,
            unit="caption",
            named=lambda caption: caption.example.id,
            say=subject.progress.say,
        )

        def attend(part: Sequence[phrases.Caption]) -> list[Tensor]:
            return attention(model, [caption.example for caption in part], inputs, text, picture)

        with subject.progress.task(f"grounding: {step.name}", len(captions), "captions") as advance:
            for first in range(0, len(captions), self.config.batch_size):
                for part, weights in halving.over(captions[first : first + self.config.batch_size], attend):
                    for caption, seen in zip(part, weights, strict=True):
                        self._add_caption(caption, seen, model, picture, text, parsed, tallies)
                    advance(len(part))
        if not tallies[ENTITIES].count:
            raise UnavailableError("no caption has a phrase with a box")
        return tallies

    def _parse_captions(
        self, model: Any, examples: Sequence[ResolvedExample], picture: str, text: str
    ) -> list[phrases.Caption]:
        field = getattr(model.embedders[text].reader, "field", text)
        if self.config.annotations:
            key = getattr(model.embedders[picture].reader, "field", picture)
            captions = phrases.flickr30k(self.config.annotations, examples, key, field)
            if not captions:
                raise DataError(
                    f"annotations: {self.config.annotations} has no files for the images of these examples, such as "
                    f"{examples[0].inputs.get(key)}"
                )
            return captions
        captions = phrases.known(examples, field)
        if not captions:
            raise DataError(
                "the data set has no boxes for the captions' phrases; name a folder of Flickr30k Entities with "
                "'annotations'"
            )
        return captions

    def _add_caption(
        self,
        caption: phrases.Caption,
        seen: Tensor,
        model: Any,
        picture: str,
        text: str,
        parsed: parses.Parses,
        tallies: dict[str, Tally],
    ) -> None:
        """Add one caption's attention (layers, heads, N, R) to the tallies."""
        description = model.embedders[picture].describe(caption.example)
        spans = model.embedders[text].describe(caption.example).get("spans")
        if not spans:
            raise UnavailableError("the tokenizer does not give the positions of tokens in a text")
        regions = [
            index for index, is_region in enumerate(description.get("regions") or [True] * seen.shape[-1]) if is_region
        ]
        seen = seen[..., regions]  # without the whole picture and the end slot
        boxes = [description["boxes"][index] for index in regions]
        scores = [description["scores"][index] for index in regions] if description.get("scores") else None
        surest = max(range(len(regions)), key=scores.__getitem__) if scores else 0
        for query in self._find_queries(caption, spans, parsed):
            fits = iou(boxes, query.boxes).max(1) >= self.config.iou_threshold - SLACK  # (R,)
            weights = seen[:, :, list(query.slots)].mean(2)  # (layers, heads, R)
            tallies.setdefault(query.name, Tally()).add(weights, torch.from_numpy(fits), surest, bool(scores))

    def _find_queries(
        self, caption: phrases.Caption, spans: Sequence[Sequence[int]], parsed: parses.Parses
    ) -> Iterable[Query]:
        words = parsed.get(parses.letters(caption.text), ()) if parsed else parses.from_dataset(caption)
        for phrase in caption.phrases:
            slots = slots_between(spans, phrase.first, phrase.end)
            slot_groups: dict[str, Sequence[tuple[int, ...]]] = {
                "mean": [slots],
                "last": [slots[-1:]],
                "each": [(slot,) for slot in slots],
            }
            groups = slot_groups[self.config.phrase]
            yield from (Query(ENTITIES, group, phrase.boxes) for group in groups if group)
            for relation, first, end in parses.related_words(caption.text, phrase, words):
                if word_slots := slots_between(spans, first, end):
                    yield Query(relation, word_slots, phrase.boxes)


@torch.inference_mode()
def attention(
    model: Any, examples: Sequence[ResolvedExample], inputs: Sequence[str], text: str, picture: str
) -> list[Tensor]:
    """Attention (layers, heads, N, R) of each example, from the caption's N slots to the picture's R slots."""
    batch = collate(model, examples, inputs)
    rows = model.prefix(batch).slots
    encoded = model.backbone.encode(rows, output=("attentions",))
    if not encoded.attentions:
        raise UnavailableError(f"{type(model.backbone).__name__} does not return its attention")
    attentions = []
    for row, columns in enumerate(input_columns(rows)):
        layers = [layer[row].float()[:, columns[text]][:, :, columns[picture]] for layer in encoded.attentions]
        attentions.append(torch.stack(layers).cpu())
    return attentions
