"""The conformance suite of objectives: hiding, counts, losses, predictions, and training. The contract
is in `mmgen.configs.ObjectiveConfig`, `mmgen.objectives.TargetReader` and `mmgen.objectives.Objective`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch

from ..configs import BackboneConfig, EmbedderConfig, ObjectiveConfig
from ..data.collate import Collator
from ..data.seeds import RngKey
from ..evaluation.answers import predict
from ..examples import Example, Prediction
from ..model import Objectives, compose
from ..objectives import Objective
from ..tensors import Batch
from .suite import Suite, Tried, assert_close, assert_json, assert_type, explained, skip
from .tiny import Tiny
from .toy import TEXTS, Greedy, Toy, Words


class ModelSuite(Suite[Tried]):
    """A suite that tries a part in a model: the tiny backbone with the toy data set's captions."""

    def backbone_config(self) -> BackboneConfig:
        return Tiny(width=32)

    def inputs(self) -> Mapping[str, EmbedderConfig]:
        """Embedders by the names of their inputs."""
        return {"caption": Words()}

    def examples(self) -> Sequence[Example]:
        """At least three that the inputs can read."""
        return Toy().build().split("train")[::3]


class LearningSuite(ModelSuite[Tried]):
    """Tests that objectives and generators share: training in a model, on batches as in a run."""

    name: ClassVar[str]  # of the objective in the model

    def model(self) -> Any:
        """The part in a `mmgen.model.Model`, in eval mode, with the same random weights every time."""
        raise NotImplementedError

    def batch(self, model: Any, examples: Sequence[Example], epoch: int = 0) -> Batch:
        """A batch of examples as in training."""
        collate = Collator(model, model.inputs, (self.name,), RngKey(0, "suite"), self.examples())
        return collate(examples, [epoch] * len(examples))

    def sixty_updates(self, model: Any, examples: Sequence[Example], fresh: bool) -> tuple[float, float]:
        """The mean loss of the first five and of the last five of sixty updates on these examples. `fresh`: every
        update is an epoch, with draws that differ. The gradients of the last update stay."""
        losses, optimizer = list[float](), torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
        for epoch in range(60):
            optimizer.zero_grad()
            loss = model(self.batch(model, examples, epoch * fresh)).mean
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return sum(losses[:5]) / 5, sum(losses[-5:]) / 5

    def test_losses_of_a_batch_are_those_of_its_examples(self) -> None:
        """Counts and sums of losses add up, and draws depend on the example alone, so that any update may be cut."""
        model, examples = self.model(), self.examples()
        loss, alone = model(self.batch(model, examples)), [model(self.batch(model, [example])) for example in examples]
        assert any(loss.counts.values()), "all counts are zero for these examples"
        for name, count in loss.counts.items():
            counts = [single.counts[name] for single in alone]
            assert abs(count - sum(counts)) < 1e-6, (
                f"the reader counts {count} for a batch of examples that count {counts} ({name}); count predictions"
            )
            equal = torch.isclose(loss.sums[name], sum(single.sums[name] for single in alone), 1e-4, 1e-2)
            assert equal != (self.name in model.over_batch), (
                f"the loss of a batch must be the sum of its examples' losses, unless over_batch is set ({name}); draw "
                "only from `Rows.draw`"
            )

    def test_reader_and_weights(self) -> None:
        """Readers are copied to loader workers, and weights are all there is to save."""
        model, examples = self.model(), self.examples()
        with explained("the reader cannot be pickled, which loader workers need"):
            pickle.dumps(model.objective(self.name).reader)
        batch = self.batch(model, examples)
        same = repr(batch) == repr(self.batch(model, examples))
        assert same, "two reads in one epoch give different targets; draw only from `Rows.draw`"
        loss, self.seed = self.seeded(model, batch).mean, 1
        restored, self.seed = self.model(), 0
        restored.load_state_dict(model.state_dict())
        message = (
            "with the same weights, losses differ: a layer or tensor is not saved, nor trained; keep layers as "
            "attributes or in a nn.ModuleList, not in a list, a dict or the reader, and tensors as nn.Parameter"
        )
        assert_close(self.seeded(restored, batch).mean, loss, message)


class ObjectiveSuite(LearningSuite[ObjectiveConfig]):
    """What training relies on. `config()` returns an `ObjectiveConfig`. The suite tests it on the tiny backbone with
    the toy data set's captions as input; override `inputs()`, `examples()` and `vocabularies()` for others."""

    name = "own"

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """The vocabularies, as `Dataset.vocabularies` gives them."""
        return {}

    def model(self) -> Any:
        objectives = Objectives({self.name: self.buildable()}, self.vocabularies())
        return self.seeded(
            compose, self.backbone_config(), self.inputs(), Greedy(), texts=TEXTS, objectives=objectives
        ).eval()

    def test_config_and_reader_agree(self) -> None:
        """What the config declares is what the objective and its reader do."""
        config, inputs = self.config(), {name: embedder.named(name) for name, embedder in self.inputs().items()}
        assert not (refused := config.errors(inputs)), f"errors() refuses the suite's own inputs: {refused}"
        model = self.model()
        objective, readers = model.objective(self.name), {name: model.embedders[name].reader for name in inputs}
        reader, predicts = objective.reader, type(objective).predict is not Objective.predict
        for name, says, what, does in (
            ("gives", config.gives is not None, "predict", predicts),
            ("makes_rows", config.makes_rows, "rows of the reader", reader.makes_rows),
            ("hidden", sorted(config.hidden(inputs)), "hides of the reader", sorted(reader.hides(readers))),
        ):
            assert says == does, f"{name} of the config says {says}, but {what} says {does}"

    def test_training_lowers_the_loss(self) -> None:
        """Sixty updates on one batch."""
        model = self.model()
        loss = model(self.batch(model, self.examples()))
        trains = all(total.requires_grad for name, total in loss.sums.items() if loss.counts[name])
        assert trains, (
            "forward returns a loss without a gradient; do not detach it (detach, item, no_grad, a new tensor)"
        )
        first, last = self.sixty_updates(model, self.examples()[:6], fresh=False)
        idle = [name for name, p in model.objectives.named_parameters() if p.grad is None and p.requires_grad]
        assert not idle, f"no gradient reaches {', '.join(idle)}"
        assert last < 0.6 * first, f"sixty updates on one batch lower the loss only from {first:.2f} to {last:.2f}"

    def test_predictions(self) -> None:
        """One prediction for each example, whose value is JSON."""
        if self.config().gives is None:
            skip("predicts nothing")
        few = self.examples()  # in batches of 32 and 1
        many = [replace(few[number % len(few)], id=f"example {number}") for number in range(33)]
        for prediction in predict(self.model(), many, self.name):
            assert_type(prediction, Prediction, "predict")
            assert_json(prediction.value, "the value of a prediction")
