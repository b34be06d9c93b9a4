"""Masked words: the encoder's masked-language-model head predicts hidden words of texts."""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F

from mmgen.objectives import Objective, Rows, Sequencer, TargetReader
from mmgen.parts import Reader
from mmgen.tensors import Batch, Hiding, Loss, Targets

from . import MaskedWords


class HiddenWords(TargetReader):
    """Collects the labels of hidden words, in loader workers."""

    def __init__(self, config: MaskedWords) -> None:
        self.inputs = config.inputs
        self.hiding = Hiding(
            config.mlm_probability, (config.mask_replace_prob, config.random_replace_prob), config.whole_word_mask
        )

    def hides(self, readers: Mapping[str, Reader]) -> Mapping[str, Hiding]:
        texts = [name for name, reader in readers.items() if reader.hides == "words"]
        return {name: self.hiding for name in texts if not self.inputs or name in self.inputs}

    def collate(self, rows: Rows) -> Targets:
        return Targets({"loss": sum(int((words != -100).sum()) for words in rows.hidden.values())}, dict(rows.hidden))


class MaskedWordsObjective(Objective):
    """Cross-entropy of hidden words; has no parameters, since the head belongs to the backbone."""

    def __init__(self, config: MaskedWords) -> None:
        super().__init__()
        self.reader = HiddenWords(config)

    def forward(self, model: Sequencer, batch: Batch, targets: Targets) -> Loss:
        encoded = model.encode(batch)
        words = torch.cat([labels[labels != -100] for labels in targets.labels.values()])  # (n,)
        states = torch.cat([encoded.inputs[name][labels != -100] for name, labels in targets.labels.items()])  # (n, H)
        logits = model.backbone.logits(states).float()
        return Loss({"loss": F.cross_entropy(logits, words, reduction="sum")})
