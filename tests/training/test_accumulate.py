"""An update that runs out of memory is split: the same update with less memory, however often it is split."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from kit import forked, toys
from kit.training import LimitedMemory, RecordedProgress, largest_difference, step, train_step

from mmgen.errors import RunError
from mmgen.oom import ADVICE_SMALLER
from mmgen.storage.weights import read_tensors
from mmgen.training.learner import Learner

pytestmark = pytest.mark.slow


def test_a_batch_too_large_is_cut_and_the_update_is_the_same(tmp_path):
    """Without dropout the pieces' gradients add up to that of the update, so the training is the same."""
    free, cramped, messages = toys.model(dropout=0.0), toys.model(dropout=0.0), RecordedProgress()
    full_log = train_step(tmp_path / "free", free, step(length_bucket=1))
    memory = LimitedMemory(cramped, pairs=4)
    cut = train_step(tmp_path / "cramped", cramped, step(length_bucket=1), progress=messages)
    assert largest_difference(free, cramped) < 4e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in full_log], abs=1e-5)
    assert max(memory.seen) <= 4 and sum(memory.seen) > 0
    assert messages.lines[:2] == [
        "step 's', update 0: out of memory; from now on micro-batches are split into 2; updates stay the same",
        "step 's', update 0: out of memory; from now on micro-batches are split into 4; updates stay the same",
    ]
    assert "halved" not in full_log[0] and (cut[0]["halved"], cut[-1]["halved"]) == (2, 2)
    assert len(memory.tried) - len(memory.seen) <= 3  # it is learnt once, not found out for every batch


def cut_twice(model):
    """Memory that shrinks during training: enough for 6 pairs, and some updates later for 2."""
    return LimitedMemory(model, pairs=6, later=2, after=30)


def test_cuts_at_two_updates_change_neither_and_the_log_says_from_when(tmp_path):
    free, cramped, messages = toys.model(dropout=0.0), toys.model(dropout=0.0), RecordedProgress()
    full_log = train_step(tmp_path / "free", free)
    cut_twice(cramped)
    cut = train_step(tmp_path / "cramped", cramped, progress=messages)
    assert largest_difference(free, cramped) < 2e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in full_log], abs=1e-5)
    at = [
        int(re.match(r"step 's', update (\d+): out of memory", line)[1])
        for line in messages.lines
        if "out of memory" in line
    ]
    assert len(set(at)) == 2
    assert [record.get("halved", 0) for record in cut] == [
        sum(update <= number for update in at) for number in range(len(cut))
    ]


def test_a_resume_between_two_cuts_gives_the_same_bits(tmp_path):
    """The second split follows the resume; its pieces draw their own dropout."""
    full, stopped, again = (toys.model(dropout=0.3) for _ in range(3))
    cut_twice(full)
    expected = train_step(tmp_path / "whole", full)
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
        train_step(tmp_path / "stopped", stopped, step(checkpoint_every=1))
    LimitedMemory(again, pairs=6, later=2, after=memory.after - len(memory.seen))
    assert (
        train_step(tmp_path / "stopped", again, step(checkpoint_every=1)) == expected
        and largest_difference(again, full) == 0
    )


def test_pieces_draw_dropout_of_their_own_and_it_is_the_same_every_time(tmp_path):
    models = [toys.model(dropout=0.3) for _ in range(3)]
    for number, model in enumerate(models[:2]):
        LimitedMemory(model, pairs=4)
        train_step(tmp_path / str(number), model)
    train_step(tmp_path / "2", models[2])
    assert largest_difference(models[0], models[1]) == 0
    assert largest_difference(models[0], models[2]) > 1e-4


def test_a_resume_cuts_as_before(tmp_path):
    full, stopped = toys.model(dropout=0.3), toys.model(dropout=0.3)
    LimitedMemory(full, pairs=4)
    expected = train_step(tmp_path / "whole", full)

    memory = LimitedMemory(stopped, pairs=4)
    after, forward = [], stopped.forward

    def killed(batch):
        after.append(1)
        if len(after) == 40:
            raise KeyError("as good as a kill")
        return forward(batch)

    stopped.forward = killed
    chosen = step(checkpoint_every=1)
    with pytest.raises(KeyError):
        train_step(tmp_path / "stopped", stopped, chosen)
    assert json.loads(read_tensors(tmp_path / "stopped/checkpoint.safetensors")[1]["cursor"])["halved"] == 2
    again = toys.model(dropout=0.3)
    memory = LimitedMemory(again, pairs=4)
    log = train_step(tmp_path / "stopped", again, chosen)
    assert memory.tried == memory.seen  # it knew
    assert log == expected and largest_difference(again, full) == 0


def test_one_pair_that_is_too_large_is_named(tmp_path):
    model = toys.model()
    LimitedMemory(model, pairs=0)
    with pytest.raises(
        RunError, match=r"^step 's', update 0: out of memory with a single pair \(example 'e\d+'\); use shorter inputs"
    ):
        train_step(tmp_path / "s", model)


SMALL = """
    import resource, sys
    from pathlib import Path
    import torch
    from kit import toys
    from mmgen.errors import RunError
    from kit.training import RecordedProgress, step, train_step
    torch.set_num_threads(1)
    warm = step(batch_size=2, micro_batch_size=2, epochs=1)
    train_step(Path("warm"), toys.model(hidden_size=64), warm, toys.examples(2))
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + (120 << 20), resource.RLIM_INFINITY))
    progress = RecordedProgress()
    try:
        settings = step(batch_size=2000, micro_batch_size=800, epochs=1)
        log = train_step(Path("s"), toys.model(hidden_size=64), settings, toys.examples(400), progress=progress)
        print(log[-1].get("halved"))
    except RunError as error:
        print(error)
    print(progress.lines[0])
    # Libraries ask for memory while they leave, and one that gets none may end in a crash.
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(),
    reason="only Linux says how much memory a process has taken, and keeps to a limit",
)
def test_memory_that_really_ends_is_met_by_cutting(tmp_path):
    """Whichever library runs out of memory, and whatever its message. How far 120 MB suffice depends on the
    libraries."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = forked.run(SMALL, folder=tmp_path, PYTHONPATH=path, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    ended, first = done.stdout.splitlines()
    assert (
        first == "step 's', update 0: out of memory; from now on micro-batches are split into 2; updates stay the same"
    )
    assert re.fullmatch(r"\d+|step 's'(, update 0(, the optimiser's state)?)?: out of memory.*; use .*", ended)


@pytest.mark.parametrize(
    ("place", "where"),
    [
        ("mmgen.training.accumulate.all_reduce_sum", "step 's', update 0"),
        ("torch.nn.utils.clip_grad_norm_", "step 's', update 0"),
        ("torch.optim.AdamW.step", "step 's', update 0, the optimiser's state"),
        ("mmgen.training.train.Learner", "step 's'"),
        ("mmgen.training.checkpoint.write_tensors", "step 's'"),
    ],
)
def test_out_of_memory_is_one_line_if_nothing_can_be_halved(tmp_path, monkeypatch, place, where):
    def short(*_, **__):
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(place, short)
    with pytest.raises(RunError) as error:
        train_step(tmp_path / "s", toys.model())
    todo = (
        "use a smaller encoder, or a larger device"
        if "optimiser" in where
        else f"{ADVICE_SMALLER}; the last checkpoint is kept"
    )
    assert str(error.value) == f"{where}: out of memory; {todo}"
