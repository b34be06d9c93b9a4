"""Grounding (VisualBERT, section 3): every attention head as a classifier of the region that a caption word names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from mmgen_vision.boxes import SLACK, Box, iou
from mmgen_vision.mentions import slots_between
from torch import Tensor

from mmgen.attention_maps import collate, input_columns
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep

from . import Grounding, parses, phrases
from .heads import Tally, best_heads, draw, relations_table, summary
from .run_steps import in_batches, over_steps, picture_and_text, readable, write_json

ENTITIES = "entities"
RIGHT = 0.5  # overlap of a correct region with a phrase's box
RELATIONS = 10  # number of relations in the table, the most common ones, as in VisualBERT's table 2


class GroundingProbe(Probe):
    """Writes grounding.json, every head's accuracy, grounding.svg, and relations-STEP.svg for parsed captions; plots
    also as PNG."""

    def __init__(self, config: Grounding) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        least = self.config.active_threshold
        parsed = parses.read(self.config.parses) if self.config.parses else {}
        tallies, notes = over_steps(subject, lambda step, model: self._tally_step(step, model, subject, parsed))
        steps = [step for step in subject.steps if step.name in tallies]
        results = {
            step: {query: summary(tally, least) for query, tally in by_query.items()}
            for step, by_query in tallies.items()
        }
        write_json(out / "grounding.json", results)
        panels = [(step.name, step.place, tallies[step.name][ENTITIES]) for step in steps]
        plots = {"Entity grounding by layer": draw(panels, least, out / "grounding")}
        entities = {step: by_query.pop(ENTITIES) for step, by_query in tallies.items()}
        tables = {"Entity grounding, % of phrases: best heads": best_heads(entities, least)}
        for step in steps:
            relations = dict(sorted(tallies[step.name].items(), key=lambda pair: -pair[1].count)[:RELATIONS])
            if relations:
                title = f"Grounding by relation, % of words: best active heads of {step.name}"
                tables[title] = relations_table(relations, least)
                panels = [(relation, step.place, tally) for relation, tally in relations.items()]
                plots[f"Grounding by relation of {step.name}"] = draw(panels, least, out / f"relations-{step.name}")
        if parsed and not any(tallies.values()):
            notes.append(f"no sentence of {self.config.parses} matches a caption with known phrases")
        notes += [
            f"a head is active when over {100 * least:g} % of its attention goes to regions; heads are named "
            "layer-head, from 1",
            f"correct: the most attended region overlaps a box of the phrase (IoU {RIGHT:g}); 'surest region': the "
            "detector's most confident region instead, without confidences its first; 'any region': a random region; "
            "'at best': phrases with at least one correct region",
        ]
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
        captions = self._captions(model, subject.examples, picture, text)
        tallies: dict[str, Tally] = {ENTITIES: Tally()}

        def attend(part: Sequence[phrases.Caption]) -> list[Tensor]:
            return attention(model, [caption.example for caption in part], inputs, text, picture)

        for caption, seen in in_batches(f"grounding: {step.name}", captions, attend, subject.progress):
            description = model.embedders[picture].describe(caption.example)
            is_region = torch.tensor(description.get("regions") or [True] * seen.shape[-1])
            weights = seen[..., is_region]  # without the whole picture and the end slot
            regions = is_region.nonzero().flatten().tolist()
            boxes = [description["boxes"][index] for index in regions]
            scores = [description["scores"][index] for index in regions] if description.get("scores") else [0.0]
            surest = scores.index(max(scores))
            spans = model.embedders[text].describe(caption.example).get("spans")
            if not spans:
                raise UnavailableError("the tokenizer does not give the positions of tokens in a text")
            for query, slots, correct in _queries(caption, spans, parsed):
                fits = iou(boxes, correct).max(1) >= RIGHT - SLACK  # (R,)
                tally = tallies.setdefault(query, Tally())
                tally.add(weights[:, :, list(slots)].mean(2), torch.from_numpy(fits), surest)
        if not tallies[ENTITIES].count:
            raise UnavailableError("no caption has a phrase with a box")
        return tallies

    def _captions(
        self, model: Any, examples: Sequence[ResolvedExample], picture: str, text: str
    ) -> list[phrases.Caption]:
        field, key = (getattr(model.embedders[name].reader, "field", name) for name in (text, picture))
        if folder := self.config.annotations:
            captions = phrases.flickr30k(folder, examples, key, field)
            problem = f"{folder} has no files for the images of these examples, such as {examples[0].inputs.get(key)}"
        else:
            captions = phrases.known(examples, field)
            problem = "the data set has no boxes for the captions' phrases; name a folder of Flickr30k Entities"
        if not captions:
            raise DataError(f"annotations: {problem}")
        return captions


def _queries(
    caption: phrases.Caption, spans: Sequence[Sequence[int]], parsed: parses.Parses
) -> Iterator[tuple[str, tuple[int, ...], Sequence[Box]]]:
    """(ENTITIES or a relation, slots of the caption, the boxes that they should attend to)."""
    words = parsed.get(parses.letters(caption.text)) or parses.from_dataset(caption)
    for phrase in caption.phrases:
        spots = [(ENTITIES, phrase.first, phrase.end), *parses.related_words(caption.text, phrase, words)]
        for query, first, end in spots:
            if slots := slots_between(spans, first, end):
                yield query, slots, phrase.boxes


@torch.inference_mode()
def attention(
    model: Any, examples: Sequence[ResolvedExample], inputs: Sequence[str], text: str, picture: str
) -> list[Tensor]:
    """Attention (layers, heads, N, R) of each example, from the caption's N slots to the picture's R slots."""
    rows = model.prefix(collate(model, examples, inputs)).slots
    encoded = model.backbone.encode(rows, output=("attentions",))
    if not encoded.attentions:
        raise UnavailableError(f"{type(model.backbone).__name__} does not return its attention")
    attentions = []
    for row, columns in enumerate(input_columns(rows)):
        layers = [layer[row].float()[:, columns[text]][:, :, columns[picture]] for layer in encoded.attentions]
        attentions.append(torch.stack(layers).cpu())
    return attentions
