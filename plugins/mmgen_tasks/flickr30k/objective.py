"""Regions of phrases: one head of attention looks from the last word piece of a phrase to the regions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from mmgen_vl.regions import choosable, plain, regions_of, right
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from mmgen.errors import DataError, MissingLabel, PluginError
from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Backbone
from mmgen.sequence import letters, slots_between
from mmgen.tensors import Batch, Loss, Prediction, ResolvedExample, Targets

if TYPE_CHECKING:
    from .config import PhraseRegions

PHRASES, LAST, RIGHT = "phrases", "last", "right"


class Phrases(TargetReader):
    """Where the phrases of every row end, and which regions they speak of, in loader workers."""

    def __init__(self, config: PhraseRegions, tokenizer: Any) -> None:
        self.caption, self.image, self.tokenizer = config.caption, config.image, tokenizer

    def collate(self, rows: Rows) -> Targets:
        boxes, mask = self._regions(rows)
        slots = self._slots(rows)
        most = max((len(each) for each in slots), default=0)
        found = torch.full((len(mask), most, mask.shape[1]), -100)  # (B, C, N), C phrases
        for row, own, real, example in zip(found, boxes, mask, rows.examples, strict=True):
            for phrase, (_, _, box) in zip(row, example.labels[PHRASES], strict=False):
                phrase[real] = right(own[real], box, example.id).long()
        last = pad_sequence(slots, True, -100)  # (B, C)
        count = int(((found == 1).any(-1) & (last != -100)).sum())
        return Targets({"loss": count}, {LAST: last, RIGHT: found})

    def ask(self, rows: Rows) -> Targets:
        """The first phrase of every row."""
        self._regions(rows)
        return Targets({}, {LAST: torch.stack([each[:1] for each in self._slots(rows)])})

    def _regions(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Boxes and mask of the regions. Raises DataError for two pictures: a list of boxes does not say of which."""
        for example in rows.examples:
            if len(example.shown(self.image)) > 1:
                raise DataError(f"example '{example.id}' shows several pictures; a phrase's boxes are those of one")
        return regions_of(rows, self.image), choosable(rows.inputs[self.image])

    def _slots(self, rows: Rows) -> list[Tensor]:
        """Of every row, which slot of its caption each phrase's last word piece is; -100 behind where it was cut."""
        lengths = rows.inputs[self.caption]["mask"].sum(1).tolist()
        return [self._ends(example, length) for example, length in zip(rows.examples, lengths, strict=True)]

    def _ends(self, example: ResolvedExample, length: int) -> Tensor:
        phrases = example.labels.get(PHRASES)
        if not phrases:
            raise MissingLabel(f"example '{example.id}' has no label '{PHRASES}'", PHRASES)
        text = example.inputs[self.caption]
        if isinstance(phrases, str):  # of who asks, and knows no box
            phrases = [(*_found(phrases, text, example.id), None)]
        spans = letters(self.tokenizer, text)
        found = []
        for place in phrases:
            try:
                first, end, *_ = place  # who asks knows no box
            except (TypeError, ValueError):
                raise DataError(
                    f"example '{example.id}': a phrase is its first character, end and box, and not {place!r:.60}"
                ) from None
            inside = slots_between(spans, first, end)
            if not inside:
                raise DataError(f"example '{example.id}': letters {first} to {end} of its caption hold no word")
            found.append(inside[-1] if inside[-1] < length else -100)
        return torch.tensor(found)


def _found(phrase: str, text: str, where: str) -> tuple[int, int]:
    """Where a phrase stands in a text first: its first character, and the last + 1."""
    first = text.lower().find(phrase.lower())
    if first < 0:
        raise DataError(f"example '{where}': its caption has no '{phrase}'")
    return first, first + len(phrase)


class PhraseRegionsObjective(Objective):
    """Owns the head: queries of phrases and keys of regions, no values. Its loss is, by phrase, the Kullback-Leibler
    divergence from the even distribution over the right regions; a phrase without one has none."""

    def __init__(self, config: PhraseRegions, backbone: Backbone) -> None:
        super().__init__()
        if not getattr(backbone.tokenizer, "is_fast", False):
            raise PluginError(
                "phrase_regions: the tokenizer does not tell where in a text its pieces stand; use a backbone with a "
                "fast tokenizer"
            )
        self.config, self.reader = config, Phrases(config, backbone.tokenizer)
        self.query = nn.Linear(backbone.hidden_size, config.width)
        self.key = nn.Linear(backbone.hidden_size, config.width)

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The original code's one head of attention, and transformers'; their values are not used."""
        parts = [f"{name}.{part}" for name in ("query", "key") for part in ("weight", "bias")]
        fronts = ("bert.flickr_", "flickr_", "")  # in the original's files, in its code, in transformers'
        called = {f"{front}attention.{own}": own for front in fronts for own in parts}
        return {own: weights[name] for name, own in called.items() if name in weights}

    def logits(self, model: Sequencer, batch: Batch, last: Tensor) -> Tensor:
        """last (B, C) slots of the caption -> (B, C, N), -inf for regions that cannot be chosen."""
        encoded = model.encode(batch)
        words, mask = encoded.inputs[self.config.caption], choosable(batch.inputs[self.config.image])
        regions = encoded.inputs[self.config.image][:, : mask.shape[1]]  # an input may end in other slots
        ends = words.gather(1, last.clamp(min=0).unsqueeze(-1).expand(-1, -1, words.shape[-1]))  # (B, C, H)
        scores = self.query(ends) @ self.key(regions).transpose(1, 2) / self.config.width**0.5
        return scores.float().masked_fill(~mask.unsqueeze(1), float("-inf"))

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        last, among = targets.labels[LAST], targets.labels[RIGHT] == 1
        asked = among.any(-1) & (last != -100)  # (B, C)
        logits, among = self.logits(model, batch, last)[asked], among[asked].float()
        even = among / among.sum(-1, keepdim=True)
        shares = logits.log_softmax(-1).masked_fill(even == 0, 0)
        return Loss({"loss": F.kl_div(shares, even, reduction="sum")})

    def predict(self, model: Sequencer, batch: Batch, targets: Targets) -> list[Prediction]:
        """All regions' boxes, the likeliest first, for the first phrase of every example."""
        last = targets.labels[LAST]
        shares = self.logits(model, batch, last).squeeze(1).softmax(-1)  # (B, N)
        boxes, mask = batch.inputs[self.config.image]["boxes"], choosable(batch.inputs[self.config.image])
        found = []
        for name, own, real, row in zip(batch.ids, boxes, mask, shares, strict=True):
            order = row[real].argsort(descending=True, stable=True)
            found.append(Prediction(name, plain(own[real][order]), row.max().item()))
        return found
