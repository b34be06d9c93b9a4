"""What the objectives of the tasks refuse: labels and inputs that do not fit."""

import random
from dataclasses import replace

import pytest
from kit.objectives import QUESTION, batch_of, examples, model, regions, two_pictures
from kit.refusals import refusal
from mmgen_inputs import Text
from mmgen_objectives import MaskedRegions, MaskedWords
from mmgen_objectives.tasks import (
    AnswerClasses,
    MultipleChoice,
    PhraseRegions,
    RegionChoice,
    RegionClasses,
    TextAssignment,
    TrueOrFalse,
)

from mmgen.errors import DataError
from mmgen.examples import Example

CAPTIONED = {"caption": Text(), "image": regions()}
ROWS = TrueOrFalse(arrangement="rows")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "inputs", "labels", "message"),
    [
        (AnswerClasses(), QUESTION, {}, " has no label 'answers'"),
        (
            AnswerClasses(),
            QUESTION,
            {"answers": {"green": 1.0}},
            " has the answer 'green', which is not among the 4 answers of the vocabulary",
        ),
        (
            ROWS,
            QUESTION,
            {"truth": True},
            ': arrangement = "rows" needs two pictures in \'image\'; give two, or set arrangement = "row"',
        ),
        (
            MultipleChoice(),
            {"question": Text()},
            {"choices": "a dog"},
            ': \'choices\' must be a list of strings, e.g. ["the first", "the second"]',
        ),
        (
            MultipleChoice(),
            {"choice": Text()},
            {"choices": ("a", "b"), "choice": 2},
            ": choice must be from 0 to 1, not 2",
        ),
        (
            RegionChoice(),
            {"image": regions()},
            {"box": (0.5, 0, 0.2, 1)},
            ": the box must be [x0, y0, x1, y1] with x0 < x1 and y0 < y1, not (0.5, 0, 0.2, 1)",
        ),
        (
            PhraseRegions(),
            CAPTIONED,
            {"phrases": ((50, 60, (0, 0, 1, 1)),)},
            ": characters 50 to 60 of the caption (22) have no word",
        ),
        (
            PhraseRegions(),
            CAPTIONED,
            {"phrases": ((3,),)},
            ": a phrase must be words of the caption, or [first character, end, box], not (3,)",
        ),
    ],
)
def test_labels_that_do_not_fit(config, inputs, labels, message):
    example = examples()[0]
    values = {name: value for name, value in example.inputs.items() if name != "choice"}
    example = replace(example, labels=labels, inputs=values)
    assert refusal(batch_of, model(config, inputs), [example]) == f"example 'e0'{message}"


@pytest.mark.slow
def test_pictures_and_captions_that_do_not_fit():
    with pytest.raises(DataError, match="'pair' shows several pictures, but a phrase's boxes belong to one picture"):
        batch_of(model(PhraseRegions(), CAPTIONED), two_pictures())
    reader = model(TextAssignment(), CAPTIONED).objective("own").reader
    with pytest.raises(DataError, match="example 'e0' has no caption, which this objective compares"):
        reader.rows(Example("e0", {"image": "p0"}), random.Random(0), lambda: examples()[1])


NO_REGIONS = "the regions of 'image'; give the step an input 'image' of type \"regions\""


@pytest.mark.parametrize(
    ("config", "inputs", "message"),
    [
        (
            AnswerClasses(),
            {"question": Text()},
            "needs a [MASK] after 'question'; give the step that input",
        ),
        (MultipleChoice(), {"question": Text()}, "needs an input that reads 'choice'; add one of type \"text\""),
        (RegionClasses(), {}, f"classifies {NO_REGIONS}"),
        (PhraseRegions(), {"image": regions()}, "needs the phrases of 'caption'; give the step an input 'caption' of"),
        (MaskedWords(inputs=("image",)), {"caption": Text()}, "hides words of 'image', but the step reads: caption"),
        (MaskedRegions(), {"image": Text()}, "hides regions, but the input 'image' of type 'text' has no regions to"),
    ],
)
def test_inputs_that_do_not_fit(config, inputs, message):
    assert message in config.errors({name: embedder.named(name) for name, embedder in inputs.items()})
