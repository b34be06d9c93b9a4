"""Validation: the loss of all validation examples."""

import pytest
from kit import toys
from kit.training import LimitedMemory, build_trainer, validation_of

from mmgen.errors import RunError

pytestmark = pytest.mark.slow


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
