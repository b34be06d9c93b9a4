"""The conformance suite of generators: attributes, layout of targets, and training. The contract is
in `mmgen.objectives.Generator`, `mmgen.objectives.TextTargets` and `mmgen.tensors.Tail`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from ..configs import EmbedderConfig
from ..examples import Example
from ..model import compose
from ..objectives import Generator
from ..tensors import Loss, Tail, Targets
from .bag import Bag
from .mixing import backbones
from .suite import assert_close, skip
from .toy import TEXTS
from .writing import WritingSuite


class GeneratorSuite(WritingSuite):
    """What training and writing rely on. `config()` returns a `GeneratorConfig`. The suite tests it on the tiny
    backbone with the toy data set's captions as input."""

    def train(self, example: Example, caption: EmbedderConfig | None = None) -> tuple[Any, float, float]:
        """A model after sixty updates on one pair, and its loss in the first and in the last of them."""
        model = self.model(caption)
        return model, *self.sixty_updates(model, [example], fresh=True)

    def summed(self, model: Any, example: Example) -> Tensor:
        """() the sum of all losses of one example."""
        return torch.stack([*model(self.batch(model, [example])).sums.values()]).sum()

    def test_attributes(self) -> None:
        generator: Generator = self.model().generator
        limit, needs, as_laid_out = generator.max_tokens, generator.needs, generator.reads_as_laid_out
        kind = generator.score_kind
        assert kind in ("log-probability", "confidence"), (
            f'score_kind is {kind!r}; score_kind must be "log-probability" or "confidence"'
        )
        long_enough = isinstance(limit, int) and limit >= 2
        assert long_enough, "max_tokens must be an integer of 2 or more (a token and the end)"
        assert needs in ("any", "causal"), f'needs is {needs!r}; needs must be "any" or "causal"'
        assert isinstance(as_laid_out, bool), f"reads_as_laid_out is {as_laid_out!r}; expected True or False"

    def test_layout_of_targets(self) -> None:
        model = self.model()
        tail = self.batch(model, self.examples()).tail
        assert isinstance(tail, Tail), "lay_out must return a Tail"
        parts = (tail.ids, tail.offsets, tail.layout.role, tail.layout.group, tail.layout.time, tail.labels)
        same = len({part.shape for part in parts}) == 1 and tail.ids.ndim == 2
        assert same, "the tensors of the Tail that lay_out returns are not all (B, S)"
        labelled = tail.labels != -100
        assert not (~tail.layout.real & labelled).any(), "lay_out labels a padded slot"
        assert labelled.any(), "lay_out labels no slot, so nothing is predicted"
        reader = model.generator.reader
        for length in (2, 3, 5):
            slots = reader.slots(length)
            real = int(reader.lay_out([[[model.backbone.mask_id] * length]]).layout.real.sum())
            message = f"slots({length}) is {slots}, but lay_out returns {real} slots for a target of {length} tokens"
            assert slots == real, message

    def test_reads_as_laid_out(self) -> None:
        """Attention maps and probes read the rows of `lay_out`; training must read the same, or declare that it does
        not."""
        model = self.model()
        batch = self.batch(model, self.examples())
        assert batch.tail is not None  # `batch` lays targets out
        laid_out = sorted(batch.tail.ids[batch.tail.layout.real].tolist())
        embedded: list[list[int]] = []
        embed, pad = model.backbone.embed, model.backbone.pad_id

        def recording_embed(ids: Tensor) -> Tensor:
            embedded.append(sorted(token for token in ids.flatten().tolist() if token != pad))
            return embed(ids)

        model.backbone.embed = recording_embed
        for mode in (True, False):
            embedded.clear()
            self.seeded(model.train(mode), batch)
            assert not model.generator.reads_as_laid_out or laid_out in embedded, (
                f"in {'training' if mode else 'validation'}, forward reads different tokens than lay_out returned, so "
                "attention maps would show rows that the model never reads; set reads_as_laid_out = False"
            )

    def test_targets_of_one_example_do_not_see_one_another(self) -> None:
        model = self.model()
        example = next(example for example in self.examples() if len(example.targets) > 1)
        a, b, *rest = example.targets
        ab, ba, aa, bb = (
            self.summed(model, replace(example, targets=(first, second, *rest)))
            for first, second in ((a, b), (b, a), (a, a), (b, b))
        )
        message = (
            "the loss of an example with several targets must be the sum of the targets' losses, and what is drawn for "
            "a target must not depend on the others"
        )
        assert_close(ab + ba, aa + bb, message, 1e-2)

    def test_overfits_one_pair(self) -> None:
        example = self.examples()[0]
        model, first, last = self.train(example)
        message = (
            f"sixty updates on one pair lower the loss only from {first:.2f} to {last:.2f}; expected less than a fifth"
        )
        assert last < 0.2 * first, message
        ((written,),) = self.write(model.eval(), [example])
        assert written.text == _as_written(model, example), (
            f"trained on '{example.targets[0]}' alone, the generator writes '{written.text}'; writing must use what "
            "training uses"
        )

    def test_writes_after_shared_positions(self) -> None:
        """With an input whose slots share a position and which adds terms to written tokens (`mmgen.testing.Bag`)."""
        examples = self.examples()
        model, _, _ = self.train(examples[0], Bag())
        ((written,),) = self.write(model.eval(), examples[:1])
        assert written.text == _as_written(model, examples[0]), (
            f"with an input whose slots share a position, the generator is trained on '{examples[0].targets[0]}' alone "
            f"and writes '{written.text}'; write with model.written or model.behind, and do not count slots"
        )
        for example, (together,) in zip(examples, self.write(model, examples), strict=True):
            ((alone,),) = self.write(model, [example])
            assert together.tokens == alone.tokens and abs(together.score - alone.score) < 1e-3, (
                f"with an input that adds terms to written tokens, '{example.id}' gets '{together.text}' in a batch "
                f"and "
                f"'{alone.text}' alone; keep the prefix in step with the rows (prefix.select, prefix.repeat)"
            )

    def test_writing_uses_added_terms(self) -> None:
        model = self.model()
        if not model.generator.reads_as_laid_out or not self._scores_as_it_learns(model):
            skip("the score of a text is not minus its mean loss")
        assert self._scores_as_it_learns(self.model(Bag())), (
            "with an input that adds terms to written tokens, the score of a text is not minus its mean loss; write "
            "with model.written or model.behind, which add the terms too"
        )

    def test_trains_as_it_writes_with_every_kind_of_backbone(self) -> None:
        """With a backbone that mixes as the config's `backbones` say, what a slot predicts must not depend on later
        words of its target: writing does not have them."""
        model = self.model()
        if not model.generator.reads_as_laid_out or not self._scores_as_it_learns(model):
            skip("the score of a text is not minus its mean loss")
        for kind in sorted(self.config().backbones - {"visible"}):
            for backbone in backbones(kind, model.generator.needs):
                on_kind = self.seeded(compose, backbone, self.inputs(), self.config(), texts=TEXTS).eval()
                assert self._scores_as_it_learns(on_kind), (
                    f'backbones names "{kind}", but with {type(backbone).__name__}, whose slots see '
                    f"{backbone.sees}, the score of a text is not minus its mean loss: in training a slot sees words "
                    "that are not there when it writes"
                )

    def _scores_as_it_learns(self, model: Any) -> bool:
        """Whether the score of a written text is minus the text's mean loss."""
        example, reader = self.examples()[0], model.generator.reader
        ((written,),) = self.write(model, [example])
        tail = reader.lay_out([[list(written.tokens)]])
        targets = Targets(dict.fromkeys(reader.losses, len(written.tokens)), tail=tail)
        loss: Loss = model.generator(model, self.to_write(model, [example]), targets)
        total = torch.stack([*loss.sums.values()]).sum().item()
        return abs(total / len(written.tokens) + written.score) < 1e-3


def _as_written(model: Any, example: Example) -> str:
    """The first target as its tokens are decoded: without blanks that the tokenizer drops."""
    text: str = model.backbone.decode_text(model.backbone.encode_text(example.targets[0]))
    return text
