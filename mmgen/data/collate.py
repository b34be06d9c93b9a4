"""Collate: examples to batches, in the loader's workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..errors import DataError
from ..tensors import Batch, Example

if TYPE_CHECKING:
    from ..model import Model


REMEMBERED = 300_000  # texts whose tokens are kept; VQA has 250,000 questions to learn from


MEASURED = 10_000  # examples whose targets are tokenised at a time to tell their lengths


class Collator:
    """Settled examples -> Batch. Holds readers and the generator's layout, and nothing that lives on a device.

    inputs   names of the inputs a step reads, in the recipe's order
    targets  whether questions are laid out too
    """

    def __init__(self, model: Model, inputs: Sequence[str], targets: bool = True) -> None:
        self.readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
        self.tokenizer, self.end_id = model.backbone.tokenizer, model.backbone.end_id
        self.lay_out = model.generator.lay_out if targets else None
        self.slots_of_target = model.generator.slots
        self.max_tokens = model.generator.max_tokens
        self._known: dict[str, list[int]] = {}  # tokens of targets: the same ones come again every epoch

    def __call__(self, examples: Sequence[Example]) -> Batch:
        inputs = {
            name: reader.collate([reader.read(example.seen_by(name)) for example in examples])
            for name, reader in self.readers.items()
        }
        tail = self.lay_out([self.targets(example) for example in examples]) if self.lay_out else None
        return Batch(tuple(example.id for example in examples), inputs, tail)

    def targets(self, example: Example) -> list[list[int]]:
        """Token ids of an example's targets, cut to the generator's limit, the end token last."""
        if not example.targets:
            raise DataError(f"example '{example.id}' has no target to learn from")
        return [tokens[: self.max_tokens - 1] + [self.end_id] for tokens in self._tokens(example.targets)]

    def slots(self, examples: Sequence[Example]) -> list[float]:
        """About how many slots each resolved example's row takes: its prefix and, where they are laid out, its
        targets."""
        tails = self.tails(examples) if self.lay_out else [0] * len(examples)
        return [self.prefix(example) + tail for example, tail in zip(examples, tails, strict=True)]

    def prefix(self, example: Example) -> float:
        """About how many slots a resolved example's prefix takes."""
        return sum(1 + reader.slots(example.seen_by(name)) for name, reader in self.readers.items())

    def tails(self, examples: Sequence[Example]) -> list[int]:
        """How many slots each example's targets take, as the generator lays them out."""
        found = []
        for first in range(0, len(examples), MEASURED):
            some = examples[first : first + MEASURED]
            tokens = iter(self._tokens([text for example in some for text in example.targets]))
            found += [
                sum(self.slots_of_target(min(len(next(tokens)) + 1, self.max_tokens)) for _ in example.targets)
                for example in some
            ]
        return found

    def cut(self, examples: Sequence[Example]) -> int:
        """How many targets are longer than the limit."""
        texts = [text for example in examples for text in example.targets]
        return sum(len(tokens) >= self.max_tokens for tokens in self._tokens(texts)) if texts else 0

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            if len(self._known) > REMEMBERED:
                self._known.clear()
                new = list(dict.fromkeys(texts))
            ids = self.tokenizer(new, add_special_tokens=False, verbose=False)["input_ids"]
            self._known.update(zip(new, ids, strict=True))
        return [self._known[text] for text in texts]


def by_length(slots: Sequence[float], batch_size: int) -> Iterator[list[int]]:
    """Indices of examples in batches for evaluation; those whose rows take as many slots go together."""
    order = sorted(range(len(slots)), key=lambda index: (slots[index], index))
    for first in range(0, len(order), batch_size):
        yield order[first : first + batch_size]
