"""The conformance suite of objectives: what one hides, counts and sums up, and that it learns."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..configs import BackboneConfig, EmbedderConfig, ObjectiveConfig
from ..tensors import Batch, Example, Loss
from .suite import Suite, expect, expect_equal, expect_published, sixty_updates
from .tiny import Tiny
from .toy import TEXTS, Toy, Words

OWN = "own"  # the objective's name in the suite
FORWARD, COLLATE = "mmgen.objectives.Objective.forward", "mmgen.objectives.TargetReader.collate"
CONFIG, READER = "mmgen.configs.ObjectiveConfig", "mmgen.objectives.TargetReader"


class ObjectiveSuite(Suite[ObjectiveConfig]):
    """What learning relies on. `config()` returns an `ObjectiveConfig`. It is tried behind the tiny backbone, with the
    toy data set's captions as its input; `inputs()`, `examples()` and `labels()` give it others."""

    def backbone_config(self) -> BackboneConfig:
        return Tiny(width=32)

    def inputs(self) -> Mapping[str, EmbedderConfig]:
        """The inputs of the step, by name."""
        return {"caption": Words()}

    def examples(self) -> Sequence[Example]:
        """At least three examples to learn from."""
        return Toy().build().split("train")[::3]

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What there is to choose from, as `Dataset.labels` says it."""
        return {}

    def model(self) -> Any:
        """The objective in a `mmgen.model.Model`, in eval mode."""
        from ..model import Objectives, compose
        from .greedy import Greedy

        learnt = Objectives({OWN: self.config()}, self.labels())
        return self.seeded(
            compose, self.backbone_config(), self.inputs(), Greedy(), texts=TEXTS, objectives=learnt
        ).eval()

    def collator(self, model: Any) -> Any:
        from ..data.collate import Collator
        from ..data.seeds import Place

        return Collator(model, model.inputs, (OWN,), Place(0, "suite"), self.examples())

    def batch(self, model: Any, examples: Sequence[Example]) -> Batch:
        """Examples in their first pass over the data."""
        return self.collator(model)(examples, [0] * len(examples))

    def test_its_two_halves_agree(self) -> None:
        """What the config says of hiding and rows, the reader does."""
        config, model = self.config(), self.model()
        inputs = {name: each.named(name) for name, each in self.inputs().items()}
        expect(not config.misfits(inputs), f"misfits refuses the suite's own inputs: {config.misfits(inputs)}", CONFIG)
        reader = model.objective(OWN).reader
        hidden = reader.hides({name: embedder.reader for name, embedder in model.embedders.items()})
        expect(
            set(config.hidden(inputs)) == set(hidden),
            f"the config says that it hides {sorted(config.hidden(inputs))}, and the reader hides {sorted(hidden)}",
            CONFIG,
        )
        expect(config.makes_rows == reader.makes_rows, "makes_rows of the config and of its reader differ", CONFIG)

    def test_published_weights(self) -> None:
        expect_published(self.model().objective(OWN))

    def test_the_reader_travels_to_workers(self) -> None:
        reader = self.model().objective(OWN).reader
        held = [name for name, value in vars(reader).items() if isinstance(value, torch.nn.Module)]
        expect(not held, f"the reader keeps a module ({', '.join(held)}); parameters stay in the objective", READER)
        try:
            pickle.dumps(reader)
        except Exception as error:  # whatever pickle cannot do
            expect(False, f"the reader cannot be pickled, which loader workers need: {error}", READER)

    def test_counts_and_sums(self) -> None:
        model, examples = self.model(), self.examples()
        reader, batch = model.objective(OWN).reader, self.batch(model, examples)
        counts = batch.targets[OWN].counts
        expect(
            set(counts) == set(reader.losses), f"counts are of {sorted(counts)}, and losses {reader.losses}", COLLATE
        )
        for name, count in counts.items():
            number = isinstance(count, int | float) and not isinstance(count, bool)
            expect(number, f"the count of '{name}' is {count!r}; it is a number, and no tensor", COLLATE)
        expect(any(counts.values()), "nothing is counted in all of the examples", COLLATE)
        together: Loss = model(batch)
        alone = [model(self.batch(model, [example])) for example in examples]
        for name, count in together.counts.items():
            expect(
                abs(count - sum(loss.counts[name] for loss in alone)) < 1e-6,
                f"the count of '{name}' in a batch is not the sum of its examples' counts",
                COLLATE,
            )
            summed = torch.stack([loss.sums[name] for loss in alone]).sum()
            wrong = f"the loss '{name}' of a batch is not the sum of its examples' losses"
            expect_equal(together.sums[name], summed, wrong, FORWARD, 1e-2)

    def test_draws_follow_from_the_example(self) -> None:
        """An example has the same targets in any batch and at every try, so that an update may be cut at will."""
        model, examples = self.model(), self.examples()
        collate = self.collator(model)
        alone = [_told(collate([example], [0])) for example in examples]
        collate(examples, [0] * len(examples))  # whatever is drawn for others
        again = [_told(collate([example], [0])) for example in reversed(examples)]
        expect(alone == again[::-1], "two tries of one pass give other targets; draw from what the rows bring", COLLATE)
        whole = _summed(collate(examples, [0] * len(examples)))
        parts = [sum(each) for each in zip(*(_summed(collate([e], [0])) for e in examples), strict=True)]
        near = all(abs(one - other) <= 1e-6 + 1e-6 * abs(other) for one, other in zip(whole, parts, strict=True))
        expect(near, "examples have other targets in a batch than alone; draw from what the rows bring", COLLATE)

    def test_it_learns(self) -> None:
        """Sixty updates on one batch."""
        model = self.model()
        losses = sixty_updates(model, self.batch(model, self.examples()[:6]))
        idle = [name for name, p in model.objectives.named_parameters() if p.grad is None]
        expect(not idle, f"no gradient reaches {', '.join(idle)}", FORWARD)
        expect(
            losses[-1] < 0.5 * losses[0],
            f"learning one batch sixty times brings the loss from {losses[0]:.2f} to {losses[-1]:.2f} only",
            FORWARD,
        )


def _told(batch: Batch) -> str:
    """Inputs, labels and counts of a batch."""
    own = batch.targets[OWN]
    tensors = [tensor.tolist() for each in (*batch.inputs.values(), own.labels) for tensor in each.values()]
    return repr([tensors, own.counts])


def _summed(batch: Batch) -> list[float]:
    """Counts of a batch, and the sums of its labels that are no padding."""
    own = batch.targets[OWN]
    return [*own.counts.values(), *(float(t[t != -100].double().sum()) for t in own.labels.values())]
