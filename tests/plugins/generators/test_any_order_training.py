"""Training in any order draws its noise from (seed, step, epoch, example, question): lack of memory, an end in between
and several processes do not change the updates."""

import pytest
from kit.any_order import any_order
from kit.processes import log, several
from kit.training import LimitedMemory, largest_difference, train_step

pytestmark = pytest.mark.slow
BLOCKS = ({}, {"block": 4, "length": "end"})

# The second of two processes has little memory.
CRAMPED = """
    import sys
    from pathlib import Path
    from kit import toys
    from kit.any_order import any_order
    from kit.training import LimitedMemory, step
    from mmgen.data.collate import Source
    from mmgen.training import distributed
    from mmgen.training.train import train
    model = any_order(**eval(sys.argv[1]))
    accelerator = distributed.start()
    if accelerator.process_index == 1:
        LimitedMemory(model, pairs=4)
    train(model, toys.context(Path("trained"), step(), accelerator=accelerator), [Source(toys.examples(20))])
"""


@pytest.mark.parametrize("keys", [BLOCKS[0], pytest.param(BLOCKS[1], marks=pytest.mark.exhaustive)])
def test_halves_and_processes_change_nothing(tmp_path, keys):
    undisturbed, cramped = any_order(**keys), any_order(**keys)
    expected = train_step(tmp_path / "undisturbed", undisturbed)
    LimitedMemory(cramped, pairs=4)
    halved = train_step(tmp_path / "cramped", cramped)
    assert halved[-1]["micro_batch_size"] and largest_difference(undisturbed, cramped) < 5e-5
    done = several(2, tmp_path, CRAMPED, repr(keys))
    assert done.returncode == 0, done.stderr
    together = log(tmp_path / "trained")
    assert together[-1]["micro_batch_size"]
    for records in (halved, together):
        assert [record["loss"] for record in records] == pytest.approx(
            [record["loss"] for record in expected], abs=1e-5
        )
