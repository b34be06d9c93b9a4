"""Losses over the whole batch: equal however an update is split, over processes too; collectives are refused."""

import json

import pytest
import torch
from kit import contrast, toys
from kit.processes import several
from kit.training import LimitedMemory, build_learner, largest_difference, train_step

from mmgen.data.collate import Collator
from mmgen.errors import PluginError
from mmgen.storage.weights import read_tensors
from mmgen.training.learner import Learner
from mmgen.training.validate import validate

EXAMPLES = toys.examples(40)
VALIDATION = toys.examples(21, seed=1)
BOTH = ("generator", "views")


def train_with(folder, model, examples=None, **training):
    return train_step(folder, model, contrast.step(**training), examples or EXAMPLES, validation=VALIDATION)


def assert_same_losses(log, expected, tolerance=1e-6):
    """Relative for losses over 1, which are rounded to 24 bits."""
    assert len(log) == len(expected) > 2
    for record, expected_record in zip(log, expected, strict=True):
        for key, slack in (("loss", 1), ("validation_loss", 1), ("grad_norm", 10)):
            bound = tolerance * slack
            assert record.get(key, 0.0) == pytest.approx(expected_record.get(key, 0.0), abs=bound, rel=bound), key


@pytest.mark.parametrize(
    "objectives", [pytest.param(("views",), id="alone"), pytest.param(BOTH, id="both", marks=pytest.mark.slow)]
)
def test_the_gradient_is_that_of_the_whole_batch(tmp_path, objectives):
    """Of one update, against autograd through one pass."""
    chosen = contrast.step(objectives, micro_batch_size=3)
    split = build_learner(contrast.model(), tmp_path, EXAMPLES, chosen)
    unsplit = contrast.model()
    samples = [sample for micro in split.plan.updates[0] for sample in micro]
    stream = split.material.streams[0]
    unsplit(stream.batch([(EXAMPLES[sample.index], sample.epoch) for sample in samples])).mean.backward()
    gradients = {}
    split._clip_and_step = lambda *_: gradients.update(
        {n: p.grad.clone() for n, p in split.learning.items() if p.grad is not None}
    )
    with pytest.raises(TypeError):  # `_clip_and_step` gives no record here
        split.update(
            0,
            [(n, stream.batch([(EXAMPLES[v.index], v.epoch) for v in m])) for n, m in enumerate(split.plan.updates[0])],
        )
    expected = {n: p.grad for n, p in unsplit.named_parameters() if p.grad is not None}
    assert (
        gradients.keys() == expected.keys() and "objectives.views.scale" in gradients and len(split.plan.updates[0]) > 3
    )
    for name, gradient in gradients.items():
        assert (gradient - expected[name]).abs().max() < 1e-6 * max(1.0, expected[name].abs().max() * 4), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "objectives", [pytest.param(("views",), id="alone", marks=pytest.mark.exhaustive), pytest.param(BOTH, id="both")]
)
def test_micro_batches_change_nothing(tmp_path, objectives):
    logs, models = [], [contrast.model() for _ in range(2)]
    for size, model in zip((16, 4), models, strict=True):
        logs.append(train_with(tmp_path / str(size), model, objectives=objectives, micro_batch_size=size))
    assert_same_losses(logs[1], logs[0])
    assert largest_difference(*models) < 2e-5


@pytest.mark.slow
@pytest.mark.parametrize("in_features", [False, True], ids=["second pass", "first pass"])
def test_halves_change_nothing(tmp_path, in_features):
    plain, cramped = contrast.model(), contrast.model()
    expected = train_with(tmp_path / "plain", plain, objectives=BOTH)
    if in_features:
        compute = cramped.features

        def features(batch):
            if batch.size > 3:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return compute(batch)

        cramped.features = features
    LimitedMemory(cramped, pairs=10 if in_features else 6)
    log = train_with(tmp_path / "cramped", cramped, objectives=BOTH)
    assert log[-1]["halved"] > 1
    assert_same_losses(log, expected)
    assert largest_difference(plain, cramped) < 2e-5


@pytest.mark.slow
def test_a_resumed_step_is_equal_to_the_bit(tmp_path, monkeypatch):
    """With dropout: the second pass draws what the first one drew."""
    full, stopped, again = (contrast.model(dropout=0.3) for _ in range(3))
    chosen = {"objectives": BOTH, "micro_batch_size": 5, "checkpoint_every": 1}
    expected = train_with(tmp_path / "full", full, **chosen)
    update = Learner.update

    def stops(learner, number, *arguments, **more):
        if number == 3:
            raise KeyError("as good as a kill")
        return update(learner, number, *arguments, **more)

    with monkeypatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(Learner, "update", stops)
        train_with(tmp_path / "stopped", stopped, **chosen)
    assert train_with(tmp_path / "stopped", again, **chosen) == expected and largest_difference(again, full) == 0


def test_the_second_pass_has_the_dropout_of_the_first(tmp_path, monkeypatch):
    model, features = contrast.model(dropout=0.3), []
    compute = contrast.ViewsObjective.features

    def noted(*arguments):
        values = compute(*arguments)
        features.append(values["left"].detach().clone())
        return values

    monkeypatch.setattr(contrast.ViewsObjective, "features", noted)
    train_step(tmp_path, model, contrast.step(BOTH, micro_batch_size=6, updates=1, epochs=None), EXAMPLES)
    half = len(features) // 2
    assert half > 1 and all(a.equal(b) for a, b in zip(features[:half], features[half:], strict=True))
    assert not features[0][:1].equal(features[1][:1])


def test_the_comparison_draws_alike_whatever_micro_batch_was_last(tmp_path):
    """Every process compares all rows, after other micro-batches than the rest."""

    class Drops(contrast.ViewsObjective):
        def compare(self, features):
            drawn.append(torch.rand(1).item())
            return super().compare(features)

    drawn = []
    learner = build_learner(contrast.model(objective=Drops), tmp_path, EXAMPLES, contrast.step(micro_batch_size=6))
    stream, update = learner.material.streams[0], learner.plan.updates[0]
    micros = [(n, stream.batch([(EXAMPLES[v.index], v.epoch) for v in micro])) for n, micro in enumerate(update)]
    for some in (micros[:1], micros[1:], micros):
        learner.accumulator._compare_whole_batch(0, some, {"views.loss": 16})
    assert len(micros) > 1 and len(set(drawn)) == 1


def test_validation_compares_groups_in_the_order_of_the_data(tmp_path, monkeypatch):
    """Groups of `batch_size` pairs, whatever the micro-batches; with the objective alone, and beside the generator."""
    results, groups = {}, {}
    compute = contrast.ViewsObjective.compare

    def noted(objective, features):
        groups[place].append(len(features["left"]))
        return compute(objective, features)

    for place in [(objectives, size) for objectives in (("views",), BOTH) for size in (16, 2)]:
        chosen = contrast.step(place[0], micro_batch_size=place[1], batch_size=8)
        learner = build_learner(contrast.model(), tmp_path / "s", EXAMPLES, chosen, VALIDATION)
        groups[place] = []
        with monkeypatch.context() as patch:
            patch.setattr(contrast.ViewsObjective, "compare", noted)
            results[place] = validate(learner)["validation_loss"]
    assert groups[("views",), 16] == groups[("views",), 2] == [8, 8, 5]
    assert groups[BOTH, 16] == groups[BOTH, 2] and sum(groups[BOTH, 2]) == 21  # beside questions, which are pairs
    assert results[("views",), 16] == results[("views",), 2] and results[BOTH, 16] == results[BOTH, 2]
    model, total = contrast.model(), 0.0
    collate = Collator(model, ["caption"], ("views",))
    with torch.no_grad():
        for first in (0, 8, 16):
            features = model.features(collate(VALIDATION[first : first + 8]))["views"]
            total += model.compare("views", features).sums["loss"].item()
    assert results[("views",), 16] == pytest.approx(total / 21, abs=1e-5)


TWO = """
    import sys
    from pathlib import Path
    from kit import contrast, toys
    from mmgen.data.sources import Source
    from mmgen.training import distributed
    from mmgen.training.train import train
    model, accelerator = contrast.model(dropout=float(sys.argv[1])), distributed.start()
    chosen = contrast.step(("generator", "views"), micro_batch_size=int(sys.argv[2]), updates=5, epochs=None)
    source = Source(toys.examples(40), toys.examples(21, seed=1))
    folder = Path("learnt")
    folder.mkdir(exist_ok=True)
    train(model, toys.context(folder, chosen, accelerator=accelerator), [source])
"""


@pytest.mark.slow
@pytest.mark.parametrize(("dropout", "size"), [pytest.param(0.0, 4, marks=pytest.mark.exhaustive), (0.3, 6)])
def test_two_processes_train_what_one_does(tmp_path, dropout, size):
    """With dropout too, since each micro-batch has its draws; one process has an odd number of micro-batches less."""
    done = several(2, tmp_path, TWO, str(dropout), str(size))
    assert done.returncode == 0, done.stderr
    single = contrast.model(dropout=dropout)
    expected = train_with(tmp_path / "single", single, objectives=BOTH, micro_batch_size=size, updates=5, epochs=None)
    log = [json.loads(line) for line in (tmp_path / "learnt/log.jsonl").read_text().splitlines()]
    assert_same_losses(log, expected)
    two = read_tensors(tmp_path / "learnt/weights.safetensors")[0]
    assert all(
        (two[n] - t).abs().max() < 2e-5 for n, t in single.state_dict().items() if n in two and "key.bias" not in n
    )


GATHERS = """
    import sys
    from pathlib import Path
    import torch
    from torch import distributed as dist
    from kit import contrast, toys
    from mmgen.data.sources import Source
    from mmgen.errors import PluginError
    from mmgen.training import distributed
    from mmgen.training.train import train

    class Gathers(contrast.ViewsObjective):
        def features(self, model, batch, targets):
            values = super().features(model, batch, targets)
            pieces = [torch.empty_like(values["left"]) for _ in range(2)]
            dist.all_gather(pieces, values["left"].detach())
            return values

    model, accelerator = contrast.model(objective=Gathers), distributed.start()
    Path("learnt").mkdir(exist_ok=True)
    try:
        train(model, toys.context(Path("learnt"), contrast.step(micro_batch_size=4), accelerator=accelerator),
              [Source(toys.examples(20))])
    except PluginError as error:
        print(error, flush=True)
"""


@pytest.mark.slow
def test_a_collective_in_a_loss_is_refused_in_the_first_update(tmp_path):
    done = several(2, tmp_path, GATHERS)
    said = (
        "features raises CollectiveError: allgather of torch.distributed would wait for ever, since processes have "
        "different numbers of micro-batches; to compare all rows of a batch, derive from "
        "mmgen.objectives.BatchObjective and set over_batch = True\n"
    )
    assert done.stdout.count(said) == 2, (done.stdout, done.stderr)


def test_features_of_other_rows_are_refused(tmp_path):
    class Fewer(contrast.ViewsObjective):
        def features(self, model, batch, targets):
            return {name: value[:1] for name, value in super().features(model, batch, targets).items()}

    with pytest.raises(
        PluginError, match=r"features gives a float32 tensor \(1, 8\) for 'left', not a tensor of \d+ rows$"
    ):
        train_step(tmp_path, contrast.model(objective=Fewer), contrast.step(), EXAMPLES)


def test_an_objective_over_the_batch_is_not_sharded(tmp_path):
    from mmgen.recipe.step_objectives import unsupported_training

    chosen = contrast.step().model_copy(update={"training": contrast.step(shard=True).training})
    built = {"training": chosen.training, "steps": {"s": chosen}, "objectives": {"views": contrast.Views()}}
    assert [*unsupported_training(built)] == [
        (
            ("steps", "s", "objectives"),
            "'views' compares the rows of a whole batch, which training.shard does not support; set "
            "steps.s.training.shard = false",
        )
    ]
