"""An update that runs out of memory is split: the same update with less memory, however often it is split."""

import os
import re
import sys
from pathlib import Path

import pytest
from kit import forked, toys
from kit.training import LimitedMemory, RecordedProgress, largest_difference, step, train_step

from mmgen.errors import RunError
from mmgen.oom import ADVICE_SMALLER

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
    said = "step 's', update 0: out of memory; from now on a micro-batch has 3 pairs; updates stay the same"
    assert messages.lines[0] == said
    sizes = [log[at].get("micro_batch_size") for log in (full_log, cut) for at in (0, -1)]
    assert sizes[:3] == [None, None, 3] and sizes[3] in (1, 3)  # 1 where two examples of 3 questions met
    assert len(memory.tried) - len(memory.seen) <= 3  # it is learnt once, not found out for every batch


def cut_twice(model):
    """Memory that shrinks during training: enough for 8 pairs, and some updates later for 4."""
    return LimitedMemory(model, pairs=8, later=4, after=12)


def test_cuts_at_two_updates_change_neither_and_the_log_says_from_when(tmp_path):
    free, cramped, messages = toys.model(dropout=0.0), toys.model(dropout=0.0), RecordedProgress()
    chosen = step(micro_batch_size=12)
    full_log = train_step(tmp_path / "free", free, chosen)
    cut_twice(cramped)
    cut = train_step(tmp_path / "cramped", cramped, chosen, progress=messages)
    assert largest_difference(free, cramped) < 2e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in full_log], abs=1e-5)
    at = [
        int(re.match(r"step 's', update (\d+): out of memory", line)[1])
        for line in messages.lines
        if "out of memory" in line
    ]
    assert len(set(at)) == 2
    assert [record.get("micro_batch_size", 12) for record in cut] == [
        12 >> sum(update <= number for update in at) for number in range(len(cut))
    ]


def test_one_pair_that_is_too_large_is_named(tmp_path):
    model = toys.model()
    LimitedMemory(model, pairs=0)
    with pytest.raises(
        RunError, match=r"^step 's', update 0: out of memory with a single example \('e\d+'\); use shorter inputs"
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
        print(log[-1].get("micro_batch_size"))
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
    assert first == "step 's', update 0: out of memory; from now on a micro-batch has 400 pairs; updates stay the same"
    assert re.fullmatch(r"\d+|step 's'(, update 0)?: out of memory.*; use .*", ended)


@pytest.mark.parametrize(
    "place",
    [
        "mmgen.training.accumulate.all_reduce_sum",
        "torch.optim.AdamW.step",
        "mmgen.training.train.Trainer",
        "mmgen.training.checkpoint.write_tensors",
    ],
)
def test_out_of_memory_is_one_line_if_nothing_can_be_halved(tmp_path, monkeypatch, place):
    def short(*_, **__):
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(place, short)
    with pytest.raises(RunError) as error:
        train_step(tmp_path / "s", toys.model())
    assert str(error.value) == f"step 's': out of memory; {ADVICE_SMALLER}; the last checkpoint is kept"
