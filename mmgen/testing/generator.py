"""The conformance suite of generators: what one declares, how it lays targets out, and what it learns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..configs import EmbedderConfig
from ..objectives import Generator
from ..tensors import Example, Loss, Tail, Targets
from .bag import Bag
from .suite import expect, expect_equal, expect_published, fail, sixty_updates, skip
from .writing import GENERATE, WritingSuite

FORWARD, LAY_OUT = "mmgen.objectives.Objective.forward", "mmgen.objectives.TextTargets.lay_out"


class GeneratorSuite(WritingSuite):
    """What training and writing rely on. `config()` returns a `GeneratorConfig`; it is tried behind the tiny backbone,
    with the toy data set's captions as its input."""

    def learnt(self, example: Example, caption: EmbedderConfig | None = None) -> tuple[Any, list[float]]:
        """A model after sixty updates on one pair, and its losses."""
        model = self.model(caption)
        return model, sixty_updates(model, self.batch(model, [example]))

    def summed(self, model: Any, example: Example) -> Tensor:
        """() the sum of all losses of one example."""
        return torch.stack([*model(self.batch(model, [example])).sums.values()]).sum()

    def test_what_it_declares(self) -> None:
        generator: Generator = self.model().generator
        expect(
            isinstance(generator.max_tokens, int) and generator.max_tokens >= 2,
            "max_tokens must be a whole number of at least 2 (a token and the end)",
            "mmgen.objectives.Generator",
        )
        expect(
            generator.needs in ("any", "causal"),
            f'needs is {generator.needs!r}; it must be "any" or "causal"',
            "mmgen.objectives.Generator",
        )

    def test_published_weights(self) -> None:
        expect_published(self.model().generator)

    def test_layout_of_targets(self) -> None:
        model = self.model()
        tail = self.batch(model, self.examples()).tail
        if not isinstance(tail, Tail):
            fail("lay_out must give a Tail", LAY_OUT)
        parts = (tail.ids, tail.offsets, tail.layout.role, tail.layout.group, tail.layout.time, tail.labels)
        expect(
            len({part.shape for part in parts}) == 1 and tail.ids.ndim == 2,
            "the parts of a Tail are not all (B, S)",
            LAY_OUT,
        )
        expect(not (~tail.layout.real & (tail.labels != -100)).any(), "a padded slot has a label", LAY_OUT)
        labels = tail.labels[tail.labels != -100]
        expect(len(labels) > 0, "no slot of a Tail has a label, so there is nothing to predict", LAY_OUT)
        reader = model.generator.reader
        for length in (2, 3, 5):
            real = int(reader.lay_out([[[model.backbone.mask_id] * length]]).layout.real.sum())
            expect(
                reader.slots(length) == real,
                f"slots({length}) is {reader.slots(length)}, and lay_out gives a target of {length} tokens {real} "
                "slots",
                "mmgen.objectives.TextTargets.slots",
            )

    def test_reads_as_laid_out(self) -> None:
        """Attention maps and probes read the rows of `lay_out`; that must be what is learnt, or be denied."""
        model = self.model()
        generator: Generator = model.generator
        expect(
            isinstance(generator.reads_as_laid_out, bool),
            f"reads_as_laid_out is {generator.reads_as_laid_out!r}; it must be True or False",
            "mmgen.objectives.Generator",
        )
        batch = self.batch(model, self.examples())
        assert batch.tail is not None  # `batch` lays targets out
        laid_out = sorted(batch.tail.ids[batch.tail.layout.real].tolist())
        embedded: list[list[int]] = []
        embed, pad = model.backbone.embed, model.backbone.pad_id

        def watched(ids: Tensor) -> Tensor:
            embedded.append(sorted(token for token in ids.flatten().tolist() if token != pad))
            return embed(ids)

        model.backbone.embed = watched
        for mode in (True, False):
            embedded.clear()
            self.seeded(model.train(mode), batch)
            expect(
                not generator.reads_as_laid_out or laid_out in embedded,
                f"while {'learning' if mode else 'validating'}, forward reads other tokens than lay_out gave, and "
                "attention maps would show rows that it never reads; set reads_as_laid_out = False",
                "mmgen.objectives.Generator",
            )

    def test_loss_is_a_sum(self) -> None:
        model, examples = self.model(), self.examples()
        together: Loss = model(self.batch(model, examples))
        alone = [model(self.batch(model, [example])) for example in examples]
        for name, count in together.counts.items():
            counts = [loss.counts[name] for loss in alone]
            expect(
                count == sum(counts) > 0,
                f"the reader counts {count} for a batch of examples that count {counts} ({name}); it is the number of "
                "things that are predicted",
                "mmgen.objectives.TargetReader.collate",
            )
            expect_equal(
                together.sums[name],
                torch.stack([loss.sums[name] for loss in alone]).sum(),
                "the loss of a batch is not the sum of its examples' losses",
                FORWARD,
                1e-2,
            )

    def test_targets_of_one_example_do_not_see_one_another(self) -> None:
        model = self.model()
        example = next(example for example in self.examples() if len(example.targets) > 1)
        apart = [Example(str(number), example.inputs, (target,)) for number, target in enumerate(example.targets)]
        wrong = "the loss of an example with several targets is not the sum of the targets' losses"
        expect_equal(
            self.summed(model, example),
            torch.stack([self.summed(model, one) for one in apart]).sum(),
            wrong,
            FORWARD,
            1e-2,
        )

    def test_loss_falls_on_one_pair_and_writes_it(self) -> None:
        example = self.examples()[0]
        model, losses = self.learnt(example)
        expect(
            losses[-1] < 0.2 * losses[0],
            f"learning one pair sixty times brings the loss from {losses[0]:.2f} to {losses[-1]:.2f} only",
            FORWARD,
        )
        ((written,),) = self.write(model.eval(), [example])
        expect(
            written.text == example.targets[0],
            f"having learnt '{example.targets[0]}' by heart, it writes '{written.text}'; does it write with what it "
            "learns?",
            GENERATE,
        )

    def test_writes_behind_positions_that_are_shared(self) -> None:
        """An input whose slots share a position, and which adds to what is written (`mmgen.testing.Bag`)."""
        example, *others = self.examples()
        model, _ = self.learnt(example, Bag())
        ((written,),) = self.write(model.eval(), [example])
        expect(
            written.text == example.targets[0],
            f"behind an input whose slots share a position, it has learnt '{example.targets[0]}' by heart and writes "
            f"'{written.text}'; write with model.written or model.behind, and count no slots",
            GENERATE,
        )
        for one, (together,) in zip((example, *others), self.write(model, [example, *others]), strict=True):
            ((alone,),) = self.write(model, [one])
            expect(
                together.tokens == alone.tokens and abs(together.score - alone.score) < 1e-3,
                f"behind an input that adds to what is written, '{one.id}' gets '{together.text}' in a batch and "
                f"'{alone.text}' alone; keep the prefix in step with the rows (prefix.select, prefix.repeat)",
                GENERATE,
            )

    def test_what_inputs_add_is_added_while_writing(self) -> None:
        model = self.model()
        if not model.generator.reads_as_laid_out or not self._scores_as_it_learns(model):
            skip("its score of a text is not minus the text's mean loss")
        expect(
            self._scores_as_it_learns(self.model(Bag())),
            "behind an input that adds to what is written, a text has another score than minus its mean loss; write "
            "with model.written or model.behind, which add it too",
            GENERATE,
        )

    def _scores_as_it_learns(self, model: Any) -> bool:
        """Whether the score of a text that it writes is minus the text's mean loss."""
        example, reader = self.examples()[0], model.generator.reader
        ((written,),) = self.write(model, [example])
        tail = reader.lay_out([[list(written.tokens)]])
        targets = Targets(dict.fromkeys(reader.losses, len(written.tokens)), tail=tail)
        loss: Loss = model.generator(model, self.batch(model, [example], objectives=()), targets)
        total = torch.stack([*loss.sums.values()]).sum().item()
        return abs(total / len(written.tokens) + written.score) < 1e-3
