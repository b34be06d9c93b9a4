"""An update that runs out of memory, meets numbers that are not finite, or is asked to stop: what it does and what it
says."""

import json
import os
import re
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from kit import forked, toys
from kit.training import Cramped, Told, apart, learn, learner_of, step

from mmgen.data.collate import Collator
from mmgen.data.plan import Plan, PlanOptions, Pool
from mmgen.data.sources import Source
from mmgen.errors import RunError
from mmgen.oom import ADVICE_SMALLER, halves, out_of_memory, targets_parted
from mmgen.storage.weights import read_tensors, state
from mmgen.tensors import Example
from mmgen.training.learner import Learner
from mmgen.training.signals import interruptions
from mmgen.training.validate import validate

pytestmark = pytest.mark.slow


def test_a_batch_too_large_is_cut_and_the_update_is_the_same(tmp_path):
    """Without dropout the pieces' gradients add up to the whole one's, so all that is learnt is the same."""
    free, cramped, told = toys.model(dropout=0.0), toys.model(dropout=0.0), Told()
    whole = learn(tmp_path / "free", free, step(bucket=1))
    memory = Cramped(cramped, pairs=4)
    cut = learn(tmp_path / "cramped", cramped, step(bucket=1), told=told)
    assert apart(free, cramped) < 4e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in whole], abs=1e-5)
    assert max(memory.seen) <= 4 and sum(memory.seen) > 0
    assert told.lines[:2] == [
        "step 's', update 0: out of memory; from here on micro-batches are cut into 2, for the same optimiser update",
        "step 's', update 0: out of memory; from here on micro-batches are cut into 4, for the same optimiser update",
    ]
    assert "halved" not in whole[0] and (cut[0]["halved"], cut[-1]["halved"]) == (2, 2)
    assert len(memory.tried) - len(memory.seen) <= 3  # it is learnt once, not found out for every batch


def cut_twice(model):
    """Memory that somebody else takes away: enough for 6 pairs, and some updates later for 2."""
    return Cramped(model, pairs=6, later=2, after=30)


def test_cuts_at_two_updates_change_neither_and_the_log_says_from_when(tmp_path):
    free, cramped, told = toys.model(dropout=0.0), toys.model(dropout=0.0), Told()
    whole = learn(tmp_path / "free", free)
    cut_twice(cramped)
    cut = learn(tmp_path / "cramped", cramped, told=told)
    assert apart(free, cramped) < 2e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in whole], abs=1e-5)
    at = [
        int(re.match(r"step 's', update (\d+): out of memory", line)[1])
        for line in told.lines
        if "out of memory" in line
    ]
    assert len(set(at)) == 2
    assert [record.get("halved", 0) for record in cut] == [
        sum(update <= number for update in at) for number in range(len(cut))
    ]


def test_a_resume_between_two_cuts_gives_the_same_bits(tmp_path):
    """The second cut comes after the resume, in pieces that draw dropout of their own."""
    whole, stopped, again = (toys.model(dropout=0.3) for _ in range(3))
    cut_twice(whole)
    expected = learn(tmp_path / "whole", whole)
    cuts = [record.get("halved", 0) for record in expected]
    memory, second = cut_twice(stopped), cuts.index(max(cuts))
    assert second > 1 and cuts[second - 1]
    update = Learner.update

    def stops(learner, number, *arguments, **more):
        if number == second:
            raise KeyError("as good as a kill")
        return update(learner, number, *arguments, **more)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(Learner, "update", stops)
        learn(tmp_path / "stopped", stopped, step(checkpoint_every=1))
    Cramped(again, pairs=6, later=2, after=memory.after - len(memory.seen))
    assert learn(tmp_path / "stopped", again, step(checkpoint_every=1)) == expected and apart(again, whole) == 0


def test_pieces_draw_dropout_of_their_own_and_it_is_the_same_every_time(tmp_path):
    models = [toys.model(dropout=0.3) for _ in range(3)]
    for number, model in enumerate(models[:2]):
        Cramped(model, pairs=4)
        learn(tmp_path / str(number), model)
    learn(tmp_path / "2", models[2])
    assert apart(models[0], models[1]) == 0
    assert apart(models[0], models[2]) > 1e-4


def test_a_resume_cuts_as_before(tmp_path):
    whole, stopped = toys.model(dropout=0.3), toys.model(dropout=0.3)
    Cramped(whole, pairs=4)
    expected = learn(tmp_path / "whole", whole)

    memory = Cramped(stopped, pairs=4)
    after, forward = [], stopped.forward

    def killed(batch):
        after.append(1)
        if len(after) == 40:
            raise KeyError("as good as a kill")
        return forward(batch)

    stopped.forward = killed
    chosen = step(checkpoint_every=1)
    with pytest.raises(KeyError):
        learn(tmp_path / "stopped", stopped, chosen)
    assert json.loads(read_tensors(tmp_path / "stopped/checkpoint.safetensors")[1]["cursor"])["halved"] == 2
    again = toys.model(dropout=0.3)
    memory = Cramped(again, pairs=4)
    log = learn(tmp_path / "stopped", again, chosen)
    assert memory.tried == memory.seen  # it knew
    assert log == expected and apart(again, whole) == 0


def test_one_pair_that_is_too_large_is_named(tmp_path):
    model = toys.model()
    Cramped(model, pairs=0)
    with pytest.raises(
        RunError, match=r"^step 's', update 0: out of memory with a single pair \(example 'e\d+'\); use shorter inputs"
    ):
        learn(tmp_path / "s", model)


def test_validation_is_cut_as_well(tmp_path):
    model, examples = toys.model(), toys.examples(9)
    learner = learner_of(model, tmp_path, examples, validation=examples)
    expected = validate(learner)["validation_loss"]
    memory = Cramped(model, pairs=5)
    assert validate(learner)["validation_loss"] == pytest.approx(expected, abs=1e-6)
    assert max(memory.seen) <= 5
    Cramped(model, pairs=0)
    with pytest.raises(
        RunError,
        match=r"^step 's', validation: out of memory with a single example \('e\d+'\); use shorter .* is kept$",
    ):
        validate(learner)


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (torch.OutOfMemoryError("HIP out of memory"), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                "9 bytes."
            ),
            True,
        ),
        (MemoryError(), True),
        (RuntimeError("could not create a primitive"), True),
        (RuntimeError("could not create a primitive descriptor for a matmul primitive"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (
            torch.AcceleratorError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
            True,
        ),
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (KeyError("memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, short):
    assert out_of_memory(error) is short


SMALL = """
    import resource, sys
    from pathlib import Path
    import torch
    from kit import toys
    from mmgen.errors import RunError
    from kit.training import Told, learn, step
    torch.set_num_threads(1)
    learn(Path("warm"), toys.model(width=64), step(batch_size=2, micro_batch=2, epochs=1), toys.examples(2))
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (120 << 20), resource.RLIM_INFINITY))
    told = Told()
    try:
        settings = step(batch_size=2000, micro_batch=800, epochs=1)
        print(learn(Path("s"), toys.model(width=64), settings, toys.examples(400), told=told)[-1].get("halved"))
    except RunError as error:
        print(error)
    print(told.lines[0])
    # Libraries ask for memory while they leave, and one that gets none may end in a crash.
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(),
    reason="only Linux says how much memory a process has taken, and keeps to a limit",
)
def test_memory_that_really_ends_is_met_by_cutting(tmp_path):
    """Whatever library asks for the bytes that are not there, and whatever it says then. How far 120 MB go depends on
    these."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = forked.run(SMALL, folder=tmp_path, PYTHONPATH=path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    ended, first = done.stdout.splitlines()
    assert (
        first
        == "step 's', update 0: out of memory; from here on micro-batches are cut into 2, for the same optimiser update"
    )
    assert re.fullmatch(r"\d+|step 's'(, update 0(, the optimiser's own state)?)?: out of memory.*; use .*", ended)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("mmgen.training.accumulate.all_reduce_sum", "step 's', update 0"),
        ("torch.nn.utils.clip_grad_norm_", "step 's', update 0"),
        ("torch.optim.AdamW.step", "step 's', update 0, the optimiser's own state"),
        ("mmgen.training.train.Learner", "step 's'"),
        ("mmgen.training.checkpoint.write_tensors", "step 's'"),
    ],
)
def test_memory_that_ends_where_nothing_can_be_cut_is_told_in_a_line(tmp_path, monkeypatch, place, where):
    def short(*_, **__):
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(place, short)
    with pytest.raises(RunError) as error:
        learn(tmp_path / "s", toys.model())
    todo = (
        "use a smaller encoder, or a larger device"
        if "optimiser" in where
        else f"{ADVICE_SMALLER}; the last checkpoint is kept"
    )
    assert str(error.value) == f"{where}: out of memory; {todo}"


def test_examples_are_cut_between_their_targets_too():
    one, two, three = (Example(str(n), {}, ("q",) * n) for n in (1, 2, 3))
    assert halves([one, two, three], targets_parted) == [[one], [two, three]]
    assert [[(e.id, len(e.targets)) for e in piece] for piece in halves([three], targets_parted)] == [
        [("3", 1)],
        [("3", 2)],
    ]
    assert halves([one], targets_parted) == [[one]] and halves([three]) == [[three]]


@pytest.mark.parametrize(("spoil", "what"), [(torch.nan, "loss"), (torch.inf, "loss")])
def test_a_loss_that_is_not_finite_names_its_examples_and_keeps_the_checkpoint(tmp_path, spoil, what):
    model, seen = toys.model(), []
    forward = model.forward

    def spoilt(batch):
        seen.append(batch.ids)
        loss = forward(batch)
        return loss if len(seen) < 6 else replace(loss, sums={name: total * spoil for name, total in loss.sums.items()})

    model.forward = spoilt
    with pytest.raises(RunError) as error:
        learn(tmp_path / "s", model, step(checkpoint_every=1))
    number = json.loads(read_tensors(tmp_path / "s/checkpoint.safetensors")[1]["cursor"])["done"]
    said = str(error.value)
    assert said.startswith(f"step 's', update {number}: the {what} is not finite (examples {seen[5][0]}")
    assert said.endswith(
        "lower learning_rate or look at their features with `mmgen data check`; the last checkpoint is kept"
    )
    again = toys.model()
    learner_of(again, tmp_path / "s")
    assert all(tensor.isfinite().all() for tensor in state(again).values())


def plan(bucket=1):
    """That of `step()`; with its bucket of 16, examples come in another order."""
    examples = toys.examples(20)
    options = PlanOptions(seed=0, step="s", epochs=2, batch_size=12, micro_batch=6, bucket=bucket)
    return Plan.make([Pool(Source(examples), Collator(toys.model(), ["caption"]))], options)


def test_a_gradient_that_is_not_finite_stops_too(tmp_path):
    model = toys.model()
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    weight = model.backbone.model.get_input_embeddings().weight
    weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(RunError, match=r"update 0: the gradient is not finite \(examples e"):
        learn(tmp_path / "s", model)
    assert all(tensor.equal(before[name]) for name, tensor in state(model).items())


def test_clipping_is_in_the_log(tmp_path):
    log = learn(tmp_path / "s", toys.model(), step(max_grad_norm=1.0))
    assert [record["clipped"] for record in log] == [record["grad_norm"] > 1.0 for record in log]
    ends = [record for record in log if "epoch_clipped" in record]
    assert len(ends) == 2 and ends[-1] is log[-1]
    of_last = [record for record in log if record["epoch"] >= 1]
    assert ends[-1]["epoch_clipped"] == sum(record["clipped"] for record in of_last) / len(of_last)
    assert "clipped" not in learn(tmp_path / "t", toys.model(), step(max_grad_norm=None))[0]


def test_ctrl_c_waits_for_the_update_and_keeps_it(tmp_path):
    whole, stopped, seen = toys.model(), toys.model(), []
    expected = learn(tmp_path / "whole", whole)
    forward = stopped.forward

    def interrupted(batch):
        seen.append(1)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return forward(batch)

    stopped.forward = interrupted
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "stopped", stopped)
    assert len(whole_updates(plan(16), seen)) == done_in(tmp_path / "stopped") < len(expected)  # that one, and no more
    again = toys.model()
    assert learn(tmp_path / "stopped", again) == expected and apart(again, whole) == 0


def whole_updates(plan, passes):
    """The updates that so many passes are spread over."""
    sizes, count = [len(update) for update in plan.updates], 0
    while sum(sizes[:count]) < len(passes):
        count += 1
    return sizes[:count]


def done_in(folder):
    return json.loads(read_tensors(folder / "checkpoint.safetensors")[1]["cursor"])["done"]


@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("epoch", [0, 1])
def test_a_stop_at_an_epochs_end_does_not_wait_for_validation(tmp_path, monkeypatch, epoch, keep):
    """It is made up for when the step goes on: the same log, the same best weights, the same bits."""
    chosen, validation = step(keep=keep, learning_rate=0.05), toys.examples(5, seed=1)
    whole, stopped, again, validated = toys.model(dropout=0.3), toys.model(dropout=0.3), toys.model(dropout=0.3), []
    expected = learn(tmp_path / "whole", whole, chosen, validation=validation)
    end = plan(16).epochs[epoch]
    update = Learner.update

    def interrupted(learner, number, *arguments, **more):
        if number == end - 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(learner, number, *arguments, **more)

    monkeypatch.setattr(Learner, "update", interrupted)
    monkeypatch.setattr("mmgen.training.train.validate", lambda *arguments: validated.append(1) or validate(*arguments))
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "stopped", stopped, chosen, validation=validation)
    assert len(validated) == epoch and done_in(tmp_path / "stopped") == end
    monkeypatch.setattr(Learner, "update", update)
    assert learn(tmp_path / "stopped", again, chosen, validation=validation) == expected and len(validated) == 2
    assert apart(again, whole) == 0
    assert {path.name for path in (tmp_path / "stopped").iterdir()} == {"log.jsonl", "weights.safetensors"}


def test_a_stop_while_validating_is_not_put_off_by_an_update(tmp_path, monkeypatch):
    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return validate(*arguments)

    monkeypatch.setattr("mmgen.training.train.validate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "s", toys.model(), validation=toys.examples(5, seed=1))
    assert done_in(tmp_path / "s") == plan(16).epochs[0]
    assert "validation_loss" in json.loads((tmp_path / "s/log.jsonl").read_text().splitlines()[-1])


@pytest.fixture
def handlers():
    """Signals as a terminal has them, however these tests were started."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_ctrl_c_does_not_wait(handlers):
    with pytest.raises(KeyboardInterrupt), interruptions() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked.is_set()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_so(handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptions() as asked:
        os.kill(os.getpid(), signal.SIGINT)
        assert not asked.is_set() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone(handlers):
    found = []

    def work():
        with interruptions() as asked:
            found.append((asked.is_set(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, signal.SIG_DFL)]


def test_a_damaged_checkpoint_is_told(tmp_path):
    from mmgen.storage.weights import write_tensors

    (tmp_path / "s").mkdir()
    write_tensors(tmp_path / "s/checkpoint.safetensors", {"model.x": torch.zeros(1)}, {"cursor": "{"})
    with pytest.raises(
        RunError, match=r"s/checkpoint.safetensors: damaged, or its log.jsonl is: .*; delete it to learn this step anew"
    ):
        learn(tmp_path / "s", toys.model())
