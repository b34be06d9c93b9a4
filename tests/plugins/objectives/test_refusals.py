"""What the objectives of the tasks refuse: labels and inputs that do not fit."""

from dataclasses import replace

import pytest
from kit.objectives import (
    QUESTION,
    batch_of,
    examples,
    model,
    regions,
)
from mmgen_inputs import Text
from mmgen_objectives.tasks import AnswerClasses, MultipleChoice, PhraseRegions, RegionChoice, TrueOrFalse

from mmgen.errors import DataError

pytestmark = pytest.mark.slow


NO_LIST = "example 'e0': 'choices' must be a list of strings, e.g. [\"the first\", \"the second\"]"


@pytest.mark.parametrize(
    ("config", "inputs", "labels", "message"),
    [
        (AnswerClasses(), QUESTION, {}, "example 'e0' has no label 'answers'"),
        (
            AnswerClasses(),
            QUESTION,
            {"answers": {"green": 1.0}},
            "example 'e0' has the answer 'green', which is not among the 4 answers of the vocabulary",
        ),
        (TrueOrFalse(), {"question": Text()}, {}, "example 'e0' has no label 'truth'"),
        (MultipleChoice(), {"question": Text()}, {}, "example 'e0' has no choices"),
        (MultipleChoice(), {"question": Text()}, {"choices": "a dog"}, NO_LIST),
        (MultipleChoice(), {"question": Text()}, {"choices": {"a dog": 1}}, NO_LIST),
        (MultipleChoice(), {"question": Text()}, {"choices": ("a dog", 7)}, NO_LIST),
        (MultipleChoice(), {"choice": Text()}, {"choices": ("a", "b")}, "example 'e0' has no label 'choice'"),
        (
            MultipleChoice(),
            {"choice": Text()},
            {"choices": ("a", "b"), "choice": 2},
            "example 'e0': choice must be from 0 to 1, not 2",
        ),
        (RegionChoice(), {"image": regions()}, {}, "example 'e0' has no label 'box'"),
        (
            RegionChoice(),
            {"image": regions()},
            {"box": (0.5, 0, 0.2, 1)},
            "example 'e0': the box must be [x0, y0, x1, y1] with x0 < x1 and y0 < y1, not (0.5, 0, 0.2, 1)",
        ),
        (PhraseRegions(), {"caption": Text(), "image": regions()}, {}, "example 'e0' has no label 'phrases'"),
        (
            PhraseRegions(),
            {"caption": Text(), "image": regions()},
            {"phrases": ((50, 60, (0, 0, 1, 1)),)},
            "example 'e0': characters 50 to 60 of the caption (22) have no word",
        ),
        (
            PhraseRegions(),
            {"caption": Text(), "image": regions()},
            {"phrases": ((3,),)},
            "example 'e0': a phrase must be words of the caption, or [first character, end, box], not (3,)",
        ),
    ],
)
def test_labels_that_do_not_fit(config, inputs, labels, message):
    example = replace(
        examples()[0], labels=labels, inputs={n: v for n, v in examples()[0].inputs.items() if n != "choice"}
    )
    with pytest.raises(DataError) as caught:
        batch_of(model(config, inputs), [example])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("config", "inputs", "message"),
    [
        (
            AnswerClasses(),
            {"question": Text()},
            "needs a [MASK] after 'question'; give the step that input with append",
        ),
        (MultipleChoice(), {"question": Text()}, "needs an input that reads 'choice'; add one of type \"text\""),
        (RegionChoice(), {"image": Text()}, "chooses among the regions of 'image'; give the step an input 'image' of"),
        (
            PhraseRegions(),
            {"image": regions()},
            "needs the phrases of 'caption'; give the step an input 'caption' of type",
        ),
    ],
)
def test_inputs_that_do_not_fit(config, inputs, message):
    assert message in config.errors({name: embedder.named(name) for name, embedder in inputs.items()})
