"""The conformance suite of objectives: hiding, counts, losses, predictions, and training. The contract
is in `mmgen.configs.ObjectiveConfig`, `mmgen.objectives.TargetReader` and `mmgen.objectives.Objective`."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import torch
from torch import distributed
from torch.utils._python_dispatch import TorchDispatchMode

from ..configs import BackboneConfig, EmbedderConfig, ObjectiveConfig
from ..data.collate import Collator
from ..data.part_checks import predict_with
from ..data.seeds import RngKey
from ..examples import Example, Prediction
from ..model import Model, Objectives, compose
from ..objectives import Objective, TargetReader
from ..tensors import Batch, Loss, Targets
from .greedy import Greedy
from .suite import Suite, Tried, assert_close, assert_json, assert_published, assert_tensors, explained, skip
from .tiny import Tiny
from .toy import TEXTS, Toy, Words

MANY = 33  # predictions at a time, more than one batch of a run
FEW = 5  # losses whose mean is compared, since every update has other draws


class CollectiveError(RuntimeError):
    """An objective calls a collective operation while it computes a loss."""


class NoCollectives(TorchDispatchMode):
    """While active, a collective operation of torch.distributed raises CollectiveError."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            name = func.__name__.partition(".")[0].rstrip("_")
            raise CollectiveError(
                f"{name} of torch.distributed would wait for ever, since processes have different numbers of "
                "micro-batches; to compare all rows of a batch, set over_batch = True"
            )
        return func(*args, **(kwargs or {}))


def assert_gradients(model: Model, name: str, batch: Batch) -> None:
    """Fails if an objective's losses have no gradient, or reach tensors that no module owns."""
    counts, sums = batch.targets[name].counts, model(batch).sums
    losses = [sums[f"{name}.{loss}"] for loss, count in counts.items() if count]
    owned = {id(parameter): parameter for parameter in model.parameters()}
    trains = [p.requires_grad for p in model.objective(name).parameters()]
    if any(trains) or all(p.requires_grad for p in owned.values()):
        message = "forward returns a loss without a gradient; do not detach it (detach, item, no_grad, a new tensor)"
        assert all(loss.requires_grad for loss in losses), message
    nodes = [loss.grad_fn for loss in losses if loss.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        assert leaf is None or id(leaf) in owned, (
            f"the loss reaches a tensor {tuple(leaf.shape)} that is not trained, because no module owns it; keep "
            "layers as attributes or in a nn.ModuleList, not in a list or a dict, and tensors as nn.Parameter"
        )
        following = {function for function, _ in node.next_functions if function is not None} - seen
        seen |= following
        nodes += following


class LearningSuite(Suite[Tried]):
    """Tests that objectives and generators share: training in a model, on batches as in a run. The suites use the tiny
    backbone with the toy data set's captions."""

    name: ClassVar[str]  # of the objective in the model

    def backbone_config(self) -> BackboneConfig:
        return Tiny(width=32)

    def inputs(self) -> Mapping[str, EmbedderConfig]:
        """The inputs of the step, by name."""
        return {"caption": Words()}

    def examples(self) -> Sequence[Example]:
        """At least three examples to train on."""
        raise NotImplementedError

    def model(self) -> Any:
        """The part in a `mmgen.model.Model`, in eval mode, with the same random weights every time."""
        raise NotImplementedError

    def collator(self, model: Any) -> Collator:
        return Collator(model, model.inputs, (self.name,), RngKey(0, "suite"), self.examples())

    def batch(self, model: Any, examples: Sequence[Example]) -> Batch:
        """A batch of examples in their first epoch; the types of its targets are checked."""
        batch = self.collator(model)(examples, [0] * len(examples))
        targets, losses = batch.targets[self.name], model.objective(self.name).reader.losses
        assert isinstance(targets, Targets), f"collate returns {targets!r:.60}; expected a mmgen.tensors.Targets"
        assert_tensors("collate returns labels", targets.labels)
        message = f"collate counts {', '.join(map(repr, targets.counts)) or 'nothing'}; its losses are "
        assert set(targets.counts) == set(losses), f"{message}{', '.join(map(repr, losses))}"
        for loss, count in targets.counts.items():
            number = isinstance(count, Real) and count >= 0
            assert number, f"collate counts {count!r:.60} for '{loss}'; a count must be a number of at least 0"
        return batch

    def sixty_updates(self, model: Any, examples: Sequence[Example], fresh: bool) -> tuple[float, float]:
        """The mean loss of the first five and of the last five of sixty updates on these examples. `fresh`: every
        update is an epoch, with draws that differ. The gradients of the last update stay."""
        collate, losses = self.collator(model), []
        optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2, fused=True)
        batch = collate(examples, [0] * len(examples))
        for update in range(60):
            if fresh and update:
                batch = collate(examples, [update] * len(examples))
            loss = model(batch).mean
            losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return sum(losses[:FEW]) / FEW, sum(losses[-FEW:]) / FEW

    def test_published_weights(self) -> None:
        assert_published(self.model().objective(self.name))

    def test_the_reader_can_be_pickled(self) -> None:
        reader = self.model().objective(self.name).reader
        modules = [name for name, value in vars(reader).items() if isinstance(value, torch.nn.Module)]
        assert not modules, f"the reader has a module ({', '.join(modules)}); parameters belong in the objective"
        with explained("the reader cannot be pickled, which loader workers need"):
            pickle.dumps(reader)

    def test_counts_and_sums(self) -> None:
        model, examples = self.model(), self.examples()
        batch_loss: Loss = model(self.batch(model, examples))
        assert any(batch_loss.counts.values()), "all counts are zero for these examples"
        alone = [model(self.batch(model, [example])) for example in examples]
        for name, count in batch_loss.counts.items():
            counts = [loss.counts[name] for loss in alone]
            assert abs(count - sum(counts)) < 1e-6, (
                f"the reader counts {count} for a batch of examples that count {counts} ({name}); a count is the "
                f"number "
                "of predictions"
            )
            if self.name in model.over_batch:
                continue
            total = torch.stack([loss.sums[name] for loss in alone]).sum()
            message = f"the loss of a batch must be the sum of its examples' losses, unless over_batch is set ({name})"
            assert_close(batch_loss.sums[name], total, message, 1e-2)

    def test_draws_depend_on_the_example(self) -> None:
        """An example has the same targets in any batch and at every call, so that any update may be cut."""
        model, examples = self.model(), self.examples()
        collate = self.collator(model)
        alone = [self._contents_of_batch(collate([example], [0])) for example in examples]
        batch_loss = self._sums_of_labels(collate(examples, [0] * len(examples)))
        repeats = [self._contents_of_batch(collate([example], [0])) for example in reversed(examples)]
        message = "two reads in one epoch give different targets; draw only from `Rows.draw`"
        assert alone == repeats[::-1], message
        parts = [sum(sums) for sums in zip(*(self._sums_of_labels(collate([e], [0])) for e in examples), strict=True)]
        near = all(abs(a - b) <= 1e-6 + 1e-6 * abs(b) for a, b in zip(batch_loss, parts, strict=True))
        assert near, (
            "examples have different targets in a batch than alone; labels and counts must be those of the batch's "
            "rows, and draws only from `Rows.draw`"
        )

    def _contents_of_batch(self, batch: Batch) -> str:
        """Inputs, labels and counts of a batch."""
        targets = batch.targets[self.name]
        tensors = [tensor.tolist() for named in (*batch.inputs.values(), targets.labels) for tensor in named.values()]
        return repr([tensors, targets.counts, targets.tail])

    def _sums_of_labels(self, batch: Batch) -> list[float]:
        """Counts of a batch, and the sums of its labels that are not padding."""
        targets = batch.targets[self.name]
        labels = [*targets.labels.values(), *([targets.tail.labels] if targets.tail else [])]
        return [*targets.counts.values(), *(float(t[t != -100].double().sum()) for t in labels)]


class ObjectiveSuite(LearningSuite[ObjectiveConfig]):
    """What training relies on. `config()` returns an `ObjectiveConfig`. The suite tests it on the tiny backbone with
    the toy data set's captions as input; override `inputs()`, `examples()` and `vocabularies()` for others."""

    name = "own"

    def examples(self) -> Sequence[Example]:
        return Toy().build().split("train")[::3]

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """The vocabularies, as `Dataset.vocabularies` gives them."""
        return {}

    def model(self) -> Any:
        objectives = Objectives({self.name: self.config()}, self.vocabularies())
        model = self.seeded(
            compose, self.backbone_config(), self.inputs(), Greedy(), texts=TEXTS, objectives=objectives
        ).eval()
        self.seeded(model.objective(self.name).on_train_begin, model)
        return model

    def test_config_and_reader_agree(self) -> None:
        """What the config declares is what the objective and its reader do."""
        config, inputs = self.config(), {name: embedder.named(name) for name, embedder in self.inputs().items()}
        assert not (refused := config.errors(inputs)), f"errors() refuses the suite's own inputs: {refused}"
        model = self.model()
        objective, readers = model.objective(self.name), {name: model.embedders[name].reader for name in inputs}
        name, reader = type(objective).__name__, objective.reader
        assert isinstance(reader, TargetReader), f"reader is {reader!r:.60}; expected a mmgen.objectives.TargetReader"
        predicts = type(objective).predict is not Objective.predict
        assert predicts or config.gives is None, (
            f'gives is "{config.gives}", but {name} has no method predict; write predict, or set gives = None'
        )
        assert not predicts or config.gives is not None, (
            f"{name} has a method predict, but gives is None, so it is never called; set gives, or remove predict"
        )
        assert config.makes_rows == reader.makes_rows, (
            f"makes_rows is {config.makes_rows} in the config, but {type(reader).__name__} "
            f"{'has a' if reader.makes_rows else 'has no'} method rows"
        )
        declared, hides = sorted(config.hidden(inputs)), sorted(reader.hides(readers))
        unable = [name for name in hides if name in readers and readers[name].hides is None]
        assert not unable, f"hides the input '{unable[0]}', whose reader cannot hide anything (its `hides` is None)"
        assert declared == hides, (
            f"the config's hidden() returns {declared}, but the reader hides {hides}; they must name the same inputs"
        )

    def test_over_batch(self) -> None:
        """A loss that compares rows has one micro-batch an update. Any other loss is a sum over examples, and an update
        may be split."""
        if not self.config().over_batch:
            skip("its loss does not compare rows")
        model, examples = self.model(), self.examples()
        alone = [model(self.batch(model, [example])) for example in examples]
        sums = model(self.batch(model, examples)).sums
        apart = {name: sum(loss.sums[name].item() for loss in alone) for name in sums}
        differs = any(abs(apart[name] - total.item()) > 1e-4 * (1 + abs(apart[name])) for name, total in sums.items())
        assert differs, "the loss of a batch is the sum of its examples' losses; leave out over_batch = True"

    def test_calls_no_collective(self) -> None:
        """Processes have different numbers of micro-batches, so a collective operation of torch.distributed would wait
        for ever. Tried in a process group of two, whose second process is a stand-in."""
        from torch.testing._internal.distributed.fake_pg import FakeStore

        if distributed.is_initialized():
            skip("there is a process group")
        model = self.model()
        batch = self.batch(model, self.examples())
        distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        try:
            with NoCollectives():
                model(batch)
        except CollectiveError as error:
            raise AssertionError(f"forward: {error}") from error
        finally:
            distributed.destroy_process_group()

    def test_training_lowers_the_loss(self) -> None:
        """Sixty updates on one batch."""
        model = self.model()
        assert_gradients(model, self.name, self.batch(model, self.examples()))
        first, last = self.sixty_updates(model, self.examples()[:6], fresh=False)
        idle = [name for name, p in model.objectives.named_parameters() if p.grad is None and p.requires_grad]
        assert not idle, f"no gradient reaches {', '.join(idle)}"
        fell = f"sixty updates on one batch lower the loss only from {first:.2f} to {last:.2f}; expected less than half"
        assert last < 0.5 * first, fell

    def test_predictions(self) -> None:
        """One prediction for each example, whose value is JSON."""
        if self.config().gives is None:
            skip("predicts nothing")
        model, few = self.model(), self.examples()
        copies = [replace(few[number % len(few)], id=f"example {number}") for number in range(MANY)]
        for examples in (few, few[:1], copies):  # of any number
            batch = Collator(model, model.inputs, (self.name,), predicting=True)(examples)
            with torch.no_grad():
                predictions = predict_with(model, self.name, batch)
            for prediction in predictions:
                expected = isinstance(prediction, Prediction)
                assert expected, f"predict returns {prediction!r:.60}; expected a mmgen.examples.Prediction"
                assert_json(prediction.value, f"the value of the prediction for '{prediction.id}'")
