"""Embedders in whole rows: the types and positions that they ask for, and what they add to slots of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from ..configs import BackboneConfig, EmbedderConfig
from ..data.seeds import resolve
from ..parts import Backbone, Embedder
from ..sequence import lay_out
from ..tensors import Example, Segment, Slots
from .rows import some_ids
from .suite import Suite, expect, expect_equal
from .tiny import Tiny
from .toy import TEXTS

SEGMENT, ADD = "mmgen.tensors.Segment", "mmgen.parts.Embedder.add and tail_term"


class RowSuite(Suite[EmbedderConfig]):
    """An embedder under test, and rows that it is in."""

    def examples(self) -> Sequence[Example]:
        """At least two, whose inputs have different numbers of slots where that is possible."""
        raise NotImplementedError(
            f"{type(self).__name__} must define examples(), which returns at least two examples to embed"
        )

    def backbone_config(self) -> BackboneConfig:
        return Tiny()

    def reading(self) -> EmbedderConfig:
        """The config, reading the first input of the first example unless it names others."""
        config = self.config()
        return config if config.reads else config.model_copy(update={"reads": (next(iter(self.examples()[0].inputs)),)})

    def embedder(self, backbone: Backbone | None = None) -> Embedder:
        """Built anew in front of a backbone, in eval mode."""
        return self.seeded(self.reading().build, backbone or self.built()).eval()

    def built(self) -> Backbone:
        config = self.reading()
        texts = [text for example in self.examples() for text in config.texts(example)]
        return self.seeded(self.backbone_config().build, texts=texts or TEXTS).eval()

    def collated(self, embedder: Embedder, examples: Sequence[Example]) -> Mapping[str, Tensor]:
        return embedder.reader.collate([embedder.reader.read(resolve(example)) for example in examples])

    def embedded(self, embedder: Embedder, examples: Sequence[Example]) -> Segment:
        return embedder(**self.collated(embedder, examples))

    def row(self, backbone: Backbone, rows: int, segment: Segment | None) -> Slots:
        """`[CLS] two words [SEP]`, and the input behind them, where there is one."""
        ids = torch.tensor([[backbone.start_id, *some_ids(backbone, 2), backbone.end_id]]).expand(rows, -1)
        known = Segment(backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))
        return lay_out([("words of the suite", known), *([("input", segment)] if segment else [])])[0]

    def added(
        self, embedder: Embedder, backbone: Backbone, examples: Sequence[Example], there: bool = True
    ) -> tuple[Slots, Tensor | None, Tensor | None]:
        """Rows with the input, or without it, and what it adds to them and behind them."""
        collated = self.collated(embedder, examples) if there else None
        slots = self.row(backbone, len(examples), None if collated is None else embedder(**collated))
        return slots, embedder.add(slots, collated, "input"), embedder.tail_term(slots, collated)

    def given(self, embedder: Embedder, backbone: Backbone, examples: Sequence[Example]) -> list[Tensor]:
        """All that an input gives to rows: its own states, and what it adds where it is there and where it is not."""
        segment = self.embedded(embedder, examples)
        terms = [term for there in (True, False) for term in self.added(embedder, backbone, examples, there)[1:]]
        return [segment.states[segment.mask], *(term for term in terms if term is not None)]

    def test_types_and_positions(self) -> None:
        embedder, examples = self.embedder(), self.examples()
        segment = self.embedded(embedder, examples)
        for name in ("types", "positions"):
            asked: Tensor | None = getattr(segment, name)
            if asked is None:
                continue
            expect(
                asked.shape == segment.mask.shape and asked.dtype == torch.long,
                f"{name} are {asked.dtype} {tuple(asked.shape)}, not int64 (B, N)",
                SEGMENT,
            )
            for number, example in enumerate(examples):
                alone = self.embedded(embedder, [example])
                expect(
                    torch.equal(asked[number][segment.mask[number]], getattr(alone, name)[0][alone.mask[0]]),
                    f"example '{example.id}' has other {name} in a batch than alone",
                    SEGMENT,
                )
        lowest = 0 if segment.types is None else int(segment.types.masked_fill(~segment.mask, 0).min())
        expect(lowest >= 0, f"asks for token type {lowest}; token types are counted from 0", SEGMENT)

    def test_what_it_adds(self) -> None:
        backbone = self.built()
        embedder, examples = self.embedder(backbone), self.examples()
        for there in (True, False):
            slots, added, term = self.added(embedder, backbone, examples, there)
            rows, _, width = slots.states.shape
            for name, found, shape in (("add", added, slots.states.shape), ("tail_term", term, (rows, width))):
                expect(
                    found is None or (found.shape == shape and bool(torch.isfinite(found).all())),
                    f"{name} must give finite numbers of the shape {tuple(shape)}, or None; also where rows lack the "
                    "input (collated is None)",
                    ADD,
                )
        slots, added, term = self.added(embedder, backbone, examples)
        for number, example in enumerate(examples):
            own, alone, behind = self.added(embedder, backbone, [example])
            wrong = f"example '{example.id}': what is added is other in a batch; a row must not depend on the others"
            if added is not None and alone is not None:
                real = slots.layout.real[number]
                expect_equal(added[number][real], alone[0][own.layout.real[0]], wrong, ADD)
            if term is not None and behind is not None:
                expect_equal(term[number], behind[0], wrong, ADD)
