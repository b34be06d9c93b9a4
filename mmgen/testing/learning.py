"""What the suites of objectives and of generators share: a part that is trained in a model, on batches as a run makes
them. The contract is in `mmgen.objectives.TargetReader` and `mmgen.objectives.Objective`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from ..configs import BackboneConfig, EmbedderConfig
from ..data.collate import Collator
from ..data.seeds import Place
from ..tensors import Batch, Example, Loss
from .suite import Suite, Tried, assert_close, assert_published, explained
from .tiny import Tiny
from .toy import Words


class LearningSuite(Suite[Tried]):
    """A part that is trained, behind the tiny backbone and the toy data set's captions."""

    name: ClassVar[str]  # of the objective in the model

    def backbone_config(self) -> BackboneConfig:
        return Tiny(width=32)

    def inputs(self) -> Mapping[str, EmbedderConfig]:
        """The inputs of the step, by name."""
        return {"caption": Words()}

    def examples(self) -> Sequence[Example]:
        """At least three examples to learn from."""
        raise NotImplementedError

    def model(self) -> Any:
        """The part in a `mmgen.model.Model`, in eval mode, with the same random weights every time."""
        raise NotImplementedError

    def collator(self, model: Any) -> Collator:
        return Collator(model, model.inputs, (self.name,), Place(0, "suite"), self.examples())

    def batch(self, model: Any, examples: Sequence[Example]) -> Batch:
        """Examples in their first epoch; what is to be predicted is checked as a run checks it."""
        return self.collator(model)(examples, [0] * len(examples))

    def test_published_weights(self) -> None:
        assert_published(self.model().objective(self.name))

    def test_the_reader_travels_to_workers(self) -> None:
        reader = self.model().objective(self.name).reader
        held = [name for name, value in vars(reader).items() if isinstance(value, torch.nn.Module)]
        assert not held, f"the reader keeps a module ({', '.join(held)}); parameters stay in the objective"
        with explained("the reader cannot be pickled, which loader workers need"):
            pickle.dumps(reader)

    def test_counts_and_sums(self) -> None:
        model, examples = self.model(), self.examples()
        together: Loss = model(self.batch(model, examples))
        assert any(together.counts.values()), "nothing is counted in all of the examples"
        alone = [model(self.batch(model, [example])) for example in examples]
        for name, count in together.counts.items():
            counts = [loss.counts[name] for loss in alone]
            assert abs(count - sum(counts)) < 1e-6, (
                f"the reader counts {count} for a batch of examples that count {counts} ({name}); it is the number of "
                "things that are predicted"
            )
            total = torch.stack([loss.sums[name] for loss in alone]).sum()
            message = f"the loss of a batch is not the sum of its examples' losses ({name})"
            assert_close(together.sums[name], total, message, 1e-2)

    def test_draws_follow_from_the_example(self) -> None:
        """An example has the same targets in any batch and at every try, so that an update may be cut at will."""
        model, examples = self.model(), self.examples()
        collate = self.collator(model)
        alone = [self._contents(collate([example], [0])) for example in examples]
        together = self._sums(collate(examples, [0] * len(examples)))
        again = [self._contents(collate([example], [0])) for example in reversed(examples)]
        message = "two tries of one pass give other targets; draw from what the rows bring"
        assert alone == again[::-1], message
        parts = [sum(sums) for sums in zip(*(self._sums(collate([e], [0])) for e in examples), strict=True)]
        near = all(abs(a - b) <= 1e-6 + 1e-6 * abs(b) for a, b in zip(together, parts, strict=True))
        assert near, "examples have other targets in a batch than alone; draw from what the rows bring"

    def _contents(self, batch: Batch) -> str:
        """Inputs, labels and counts of a batch."""
        targets = batch.targets[self.name]
        tensors = [tensor.tolist() for named in (*batch.inputs.values(), targets.labels) for tensor in named.values()]
        return repr([tensors, targets.counts, targets.tail])

    def _sums(self, batch: Batch) -> list[float]:
        """Counts of a batch, and the sums of its labels that are not padding."""
        targets = batch.targets[self.name]
        labels = [*targets.labels.values(), *([targets.tail.labels] if targets.tail else [])]
        return [*targets.counts.values(), *(float(t[t != -100].double().sum()) for t in labels)]


def sixty_updates(model: Any, batch: Batch) -> list[float]:
    """A model's losses while it learns one batch by heart; the gradients of the last update stay."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = model(batch).mean
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses
