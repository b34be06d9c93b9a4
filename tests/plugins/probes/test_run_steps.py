"""What probes share: a result for every step that has one, and a note for every other."""

from types import SimpleNamespace

import pytest
from mmgen_probes.run_steps import over_steps, picture_and_text

from mmgen.errors import DataError, UnavailableError
from mmgen.parts import ProbeInput, TrainedStep


def subject(*models, examples=("one",)):
    steps = [
        TrainedStep(f"step{place}", lambda model=model: model, (), {}, place, None)
        for place, model in enumerate(models)
    ]
    return ProbeInput(steps, list(examples), None, {})


def look(step, model):
    if isinstance(model, Exception):
        raise model
    return f"{step.name} has {model}"


def test_steps_without_a_result_are_noted():
    results, notes = over_steps(subject("heads", NotImplementedError(), UnavailableError("no attention")), look)
    assert results == {"step0": "step0 has heads"}
    assert notes == ["step1: its model does not support this probe", "step2: no attention"]


def test_no_result_at_all():
    with pytest.raises(UnavailableError, match="^step0: no attention$"):
        over_steps(subject(UnavailableError("no attention")), look)
    with pytest.raises(UnavailableError, match="^no steps to probe$"):
        over_steps(subject(), look)
    with pytest.raises(DataError, match="no examples to probe; a probe needs at least one"):
        over_steps(subject("heads", examples=()), look)


class Described:
    def __init__(self, **about):
        self.about = about

    def describe(self, example):
        if not self.about:
            raise DataError("the example lacks it")
        return self.about


def test_the_first_input_with_boxes_and_the_first_without():
    model = SimpleNamespace(
        inputs=("other", "caption", "image"),
        embedders={"other": Described(), "caption": Described(names=["a"]), "image": Described(boxes=[[0, 0, 1, 1]])},
    )
    assert picture_and_text(model, None, ("image", "caption", "other")) == ("image", "caption")
    assert picture_and_text(model, None, ("caption",)) == (None, "caption")
