"""Checks of a step's examples before it trains: what is missing, and how often."""

from dataclasses import replace

import pytest
from kit import toys

from mmgen.errors import DataError
from mmgen.runs.step_checks import check_examples, check_targets

REMEDY = "input 'caption' of step 'first'"


@pytest.fixture(scope="module")
def reader():
    return toys.model().embedders["caption"].reader


def test_all_that_lack_a_target_are_counted():
    examples = toys.examples(6)
    check_targets("data", REMEDY, examples, examples)
    lacking = [replace(example, targets=()) if example.id in ("e2", "e4", "e5") else example for example in examples]
    check_targets("data", REMEDY, lacking, lacking[:2])
    with pytest.raises(DataError) as error:
        check_targets("data", REMEDY, lacking, lacking[:3])
    assert str(error.value) == (
        f"data: example 'e2' has no target (3 of 6 examples); remove these examples, or remove {REMEDY}"
    )


def test_all_that_lack_an_input_are_counted(reader):
    examples = toys.examples(6)
    check_examples("data", REMEDY, reader, ["caption"], examples, examples)
    lacking = [replace(example, inputs={}) if number > 3 else example for number, example in enumerate(examples)]
    check_examples("data", REMEDY, reader, ["caption"], lacking, lacking[:4])
    with pytest.raises(DataError) as error:
        check_examples("data", REMEDY, reader, ["caption"], lacking, lacking[4:5])
    assert str(error.value).startswith("data: ") and str(error.value).endswith(
        f" (2 of 6 examples); remove these examples, or remove {REMEDY}"
    )
