"""The conformance suite of objectives: what one hides, counts, sums up and predicts, and that it learns. The contract
is in `mmgen.configs.ObjectiveConfig`, `mmgen.objectives.TargetReader` and `mmgen.objectives.Objective`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ..configs import ObjectiveConfig
from ..data.checked import check_predictions
from ..data.collate import Collator
from ..model import Objectives, compose
from ..tensors import Example
from .greedy import Greedy
from .learning import LearningSuite, sixty_updates
from .suite import skip
from .toy import TEXTS, Toy


class ObjectiveSuite(LearningSuite[ObjectiveConfig]):
    """What learning relies on. `config()` returns an `ObjectiveConfig`. It is tried behind the tiny backbone, with the
    toy data set's captions as its input; `inputs()`, `examples()` and `labels()` give it others."""

    name = "own"

    def examples(self) -> Sequence[Example]:
        return Toy().build().split("train")[::3]

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What there is to choose from, as `Dataset.labels` says it."""
        return {}

    def model(self) -> Any:
        objectives = Objectives({self.name: self.config()}, self.labels())
        return self.seeded(
            compose, self.backbone_config(), self.inputs(), Greedy(), texts=TEXTS, objectives=objectives
        ).eval()

    def test_its_two_halves_agree(self) -> None:
        """What the config says of hiding and rows, the reader does."""
        config, model = self.config(), self.model()
        inputs = {name: embedder.named(name) for name, embedder in self.inputs().items()}
        refused = config.misfits(inputs)
        assert not refused, f"misfits refuses the suite's own inputs: {refused}"
        reader = model.objective(self.name).reader
        says = sorted(config.hidden(inputs))
        hides = sorted(reader.hides({name: embedder.reader for name, embedder in model.embedders.items()}))
        assert says == hides, f"the config says that it hides {says}, and the reader hides {hides}"
        assert config.makes_rows == reader.makes_rows, "makes_rows of the config and of its reader differ"

    def test_it_learns(self) -> None:
        """Sixty updates on one batch."""
        model = self.model()
        losses = sixty_updates(model, self.batch(model, self.examples()[:6]))
        idle = [name for name, p in model.objectives.named_parameters() if p.grad is None]
        assert not idle, f"no gradient reaches {', '.join(idle)}"
        fell = f"learning one batch sixty times brings the loss from {losses[0]:.2f} to {losses[-1]:.2f} only"
        assert losses[-1] < 0.5 * losses[0], fell

    def test_what_it_predicts(self) -> None:
        """One prediction for each example, checked as a run checks them."""
        if self.config().gives is None:
            skip("predicts nothing")
        model, examples = self.model(), self.examples()
        objective, batch = model.objective(self.name), Collator(model, model.inputs, (self.name,), asks=True)(examples)
        with torch.no_grad():
            predictions = objective.predict(model, batch, batch.targets[self.name])
        check_predictions(predictions, batch.ids, self.name, objective)
