"""An update or a validation that runs out of memory is split: the same with less memory, however often it is split."""

import pytest
from kit import toys
from kit.refusals import refusal
from kit.training import (
    LimitedMemory,
    RecordedProgress,
    build_trainer,
    largest_difference,
    step,
    train_step,
    validation_of,
)

from mmgen.errors import RunError
from mmgen.oom import ADVICE_SMALLER


def test_a_batch_too_large_is_cut_and_the_update_is_the_same(tmp_path):
    """Without dropout the pieces' gradients add up to that of the update, so the training is the same."""
    free, cramped, messages = toys.model(dropout=0.0), toys.model(dropout=0.0), RecordedProgress()
    chosen = step(length_bucket=1, epochs=1)
    full_log = train_step(tmp_path / "free", free, chosen)
    memory = LimitedMemory(cramped, pairs=4)
    cut = train_step(tmp_path / "cramped", cramped, chosen, progress=messages)
    assert largest_difference(free, cramped) < 4e-6
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in full_log], abs=1e-5)
    assert max(memory.seen) <= 4 and sum(memory.seen) > 0
    said = "step 's', update 0: out of memory; micro_batch_size is 3 from now on; updates stay the same"
    assert messages.lines[0] == said
    sizes = [log[at].get("micro_batch_size") for log in (full_log, cut) for at in (0, -1)]
    assert sizes[:3] == [None, None, 3] and sizes[3] in (1, 3)  # 1 where two examples of 3 questions met
    assert len(memory.tried) - len(memory.seen) <= 3  # it is learnt once, not found out for every batch


@pytest.mark.slow
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
    said = refusal(train_step, tmp_path / "s", toys.model())
    assert said == f"step 's': out of memory; {ADVICE_SMALLER}; the last checkpoint is kept"


@pytest.mark.slow
def test_validation_is_cut_as_well(tmp_path):
    model, examples = toys.model(), toys.examples(9)
    learner = build_trainer(model, tmp_path, examples, validation=examples)
    expected = validation_of(learner)["validation_loss"]
    memory = LimitedMemory(model, pairs=5)
    assert validation_of(learner)["validation_loss"] == pytest.approx(expected, abs=1e-6)
    assert max(memory.seen) <= 5
    LimitedMemory(model, pairs=0)
    with pytest.raises(
        RunError,
        match=r"^step 's', validation: out of memory with a single example \('e\d+'\); use shorter .* is kept$",
    ):
        validation_of(learner)
