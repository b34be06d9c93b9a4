"""The objective of Flickr30K Entities: finds phrases in texts; an attention head looks from each to the regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from mmgen_vision.mentions import slots_between
from mmgen_vision.regions import choosable, plain, regions_of, right
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError, PluginError
from mmgen.examples import Prediction, ResolvedExample
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.tensors import Batch, Loss, Targets
from mmgen.tokens import TextEncoder

from . import PhraseRegions
from .heads import label_of

PHRASES, LAST, RIGHT = "phrases", "last", "right"


class Phrases(TargetReader):
    """Finds where the phrases of every row end, and which regions they refer to, in loader workers."""

    def __init__(self, config: PhraseRegions, encoder: TextEncoder) -> None:
        self.caption, self.image, self.encoder = config.caption, config.image, encoder

    def collate(self, rows: Rows) -> Targets:
        boxes, mask = self._boxes_and_mask(rows)
        slots = self._slots_of_phrases(rows)
        labels = torch.full((len(mask), max(map(len, slots)), mask.shape[1]), -100)  # (B, C, N), C phrases
        for row, row_boxes, real, example in zip(labels, boxes, mask, rows.examples, strict=True):
            for phrase, (_, _, box) in zip(row, example.labels[PHRASES], strict=False):
                phrase[real] = right(row_boxes[real], box, example.id).long()
        last = pad_sequence(slots, True, -100)  # (B, C)
        count = int(((labels == 1).any(-1) & (last != -100)).sum())
        return Targets({"loss": count}, {LAST: last, RIGHT: labels})

    def ask(self, rows: Rows) -> Targets:
        """Targets of a query: the first phrase of every row. Raises DataError for a query with several phrases."""
        self._boxes_and_mask(rows)
        for example in rows.examples:
            phrases = example.labels.get(PHRASES, ())
            if isinstance(phrases, list) and len(phrases) > 1:
                raise DataError(f"example '{example.id}' has {len(phrases)} phrases; give one phrase per query")
        return Targets({}, {LAST: torch.stack([phrase_slots[:1] for phrase_slots in self._slots_of_phrases(rows)])})

    def _boxes_and_mask(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Boxes and mask of the regions. Raises DataError for several pictures: boxes do not name their picture."""
        for example in rows.examples:
            if len(example.shown(self.image)) > 1:
                raise DataError(
                    f"example '{example.id}' shows several pictures, but a phrase's boxes belong to one picture; use "
                    "an example per picture"
                )
        return regions_of(rows, self.image), choosable(rows.inputs[self.image])

    def _slots_of_phrases(self, rows: Rows) -> list[Tensor]:
        """For every row, the caption slot of each phrase's last word piece; -100 where truncation cut the phrase."""
        lengths = rows.inputs[self.caption]["mask"].sum(1).tolist()
        return [self._ends_of_phrases(example, length) for example, length in zip(rows.examples, lengths, strict=True)]

    def _ends_of_phrases(self, example: ResolvedExample, length: int) -> Tensor:
        phrases, text, slots = label_of(example, PHRASES), example.inputs[self.caption], []
        spans = self.encoder.letters(text)
        for phrase in [phrases] if isinstance(phrases, str) or not isinstance(phrases, Sequence) else phrases:
            first, end = _place_of(phrase, text, example.id)
            inside = slots_between(spans, first, end) if 0 <= first < end <= len(text) else []
            if not inside:
                raise DataError(
                    f"example '{example.id}': characters {first} to {end} of the caption ({len(text)}) have no word"
                )
            slots.append(inside[-1] if inside[-1] < length else -100)
        return torch.tensor(slots)


def _place_of(phrase: Any, text: str, example_id: str) -> tuple[int, int]:
    """The first character of a phrase, and its last + 1. A query gives the words of the phrase, or no box."""
    if isinstance(phrase, str):
        if (first := text.lower().find(phrase.lower())) < 0:
            raise DataError(f"example '{example_id}': the caption does not contain '{phrase}'")
        return first, first + len(phrase)
    if isinstance(phrase, Sequence) and len(phrase) in (2, 3) and {type(phrase[0]), type(phrase[1])} == {int}:
        return phrase[0], phrase[1]
    raise DataError(
        f"example '{example_id}': a phrase must be words of the caption, or [first character, end, box], not "
        f"{phrase!r:.60}"
    )


class PhraseRegionsObjective(Objective):
    """Owns the head: queries of phrases and keys of regions, no values. The loss of a phrase is the Kullback-Leibler
    divergence from the uniform distribution over its right regions; a phrase without a right region has no loss."""

    def __init__(self, config: PhraseRegions, backbone: Backbone) -> None:
        super().__init__()
        if not getattr(backbone.tokenizer, "is_fast", False):
            raise PluginError(
                "phrase_regions: the tokenizer does not report the character offsets of its tokens; use a backbone "
                "with a fast tokenizer"
            )
        self.config, self.reader = config, Phrases(config, backbone.text_encoder)
        self.query = nn.Linear(backbone.hidden_size, config.width)
        self.key = nn.Linear(backbone.hidden_size, config.width)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Weights of the attention head in the original code or in transformers; its values are not used."""
        prefixes = ("bert.flickr_", "flickr_", "")  # in the original's files, in its code, in transformers'
        names = {f"{prefix}attention.{name}": name for prefix in prefixes for name, _ in self.named_parameters()}
        return {name: weights[published_name] for published_name, name in names.items() if published_name in weights}

    def logits(self, model: Sequencer, batch: Batch, last: Tensor) -> Tensor:
        """last (B, C) slots of the caption -> (B, C, N), -inf for regions that cannot be chosen."""
        encoded = model.encode(batch)
        words, mask = encoded.inputs[self.config.caption], choosable(batch.inputs[self.config.image])
        regions = encoded.inputs[self.config.image][:, : mask.shape[1]]  # an input may have more slots at the end
        ends = words.gather(1, last.clamp(min=0).unsqueeze(-1).expand(-1, -1, words.shape[-1]))  # (B, C, H)
        scores = self.query(ends) @ self.key(regions).transpose(1, 2) / self.config.width**0.5
        return scores.float().masked_fill(~mask.unsqueeze(1), float("-inf"))

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        last, is_right = targets.labels[LAST], targets.labels[RIGHT] == 1
        scored = is_right.any(-1) & (last != -100)  # (B, C)
        logits, is_right = self.logits(model, batch, last)[scored], is_right[scored].float()
        uniform = is_right / is_right.sum(-1, keepdim=True)
        shares = logits.log_softmax(-1).masked_fill(uniform == 0, 0)
        return Loss({"loss": F.kl_div(shares, uniform, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """The boxes of all regions, the likeliest first, for the first phrase of every example."""
        shares = self.logits(model, batch, targets.labels[LAST]).squeeze(1).softmax(-1)  # (B, N)
        boxes, mask = batch.inputs[self.config.image]["boxes"], choosable(batch.inputs[self.config.image])
        predictions = []
        for name, row_boxes, real, row in zip(batch.ids, boxes, mask, shares, strict=True):
            order = row[real].argsort(descending=True, stable=True)
            predictions.append(Prediction(name, plain(row_boxes[real][order]), row.max().item()))
        return predictions
