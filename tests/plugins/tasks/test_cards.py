"""The cards and lines of the tasks, each with exact texts, and their conformance suites."""

import pytest
from mmgen_tasks.flickr30k.card import PhraseCard
from mmgen_tasks.flickr30k.config import PhraseBoxes
from mmgen_tasks.nlvr2.card import TruthCard
from mmgen_tasks.nlvr2.config import TruthBars
from mmgen_tasks.refcoco.card import RegionCard
from mmgen_tasks.refcoco.config import ChosenRegion
from mmgen_tasks.vcr.card import ChoiceCard, NamedTextsCard
from mmgen_tasks.vcr.config import Choices, NamedTexts
from mmgen_tasks.vqa.card import AnswerCard
from mmgen_tasks.vqa.config import AnswerBars

from mmgen.cards import Bar, Card, Choice, Piece
from mmgen.tensors import All, Example, Generation, Prediction
from mmgen.testing import RendererSuite

LEFT, RIGHT = (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0)
CAPTION = Example("p", {"caption": "a red cat"}, (), {}, {"phrases": ((2, 9, LEFT),)})
VCR = Example(
    "v",
    {"question": "why is the dog here?", "question_mentions": All(((11, 14, (2,)),))},
    (),
    {},
    {"choices": ("the dog waits", "no"), "choice_mentions": (((4, 7, (2,)),), ()), "choice": 1},
)
QUESTION = (Piece("why is the "), Piece("dog", numbers=(1,)), Piece(" here?"))


def test_vqa_shows_answers_as_bars_and_marks_those_of_people():
    example = Example("q", {"question": "what is it?"}, (), {}, {"answers": {"cat": 1.0, "dog": 0.3}})
    prediction = Prediction("q", {"label": "dog", "probabilities": {"dog": 0.7, "red": 0.2}}, 0.7)
    assert AnswerCard().card(example, prediction) == Card(
        bars=(Bar("dog", 0.7, chosen=True, right=True), Bar("red", 0.2)), right=True, answers=("cat", "dog")
    )
    assert AnswerCard().line(example, prediction) == "dog"


@pytest.mark.parametrize("truth", [True, False, None])
def test_nlvr2_shows_true_and_false(truth):
    example = Example("n", {"statement": "two dogs"}, (), {}, {} if truth is None else {"truth": truth})
    prediction = Prediction("n", {"label": "True", "probabilities": {"False": 0.25, "True": 0.75}}, 0.75)
    bars = (Bar("True", 0.75, chosen=True, right=truth is True), Bar("False", 0.25, right=truth is False))
    assert TruthCard().card(example, prediction) == Card(
        bars=bars, right=truth, answers=() if truth is None else (str(truth),)
    )
    assert TruthCard().line(example, prediction) == "True"


def test_vcr_shows_choices_and_numbers_what_texts_name():
    prediction = Prediction("v", {"choice": 0, "probabilities": [0.8, 0.2]}, 0.8)
    assert ChoiceCard().card(VCR, prediction) == Card(
        bars=(Bar("A", 0.8, chosen=True), Bar("B", 0.2, right=True)),
        right=False,
        choices=(Choice((Piece("the "), Piece("dog", numbers=(1,)), Piece(" waits"))), Choice((Piece("no"),), True)),
        texts={"question": QUESTION},
        objects=(2,),
    )
    assert ChoiceCard().line(VCR, prediction) == "the dog waits"


def test_vcr_without_its_texts_shows_letters():
    example, prediction = Example("v", {"question": "why?"}), Prediction("v", {"choice": 1, "probabilities": [0, 1]}, 1)
    assert ChoiceCard().card(example, prediction) == Card(bars=(Bar("A", 0), Bar("B", 1, chosen=True)))
    assert ChoiceCard().line(example, prediction) == "B"


def test_vcr_numbers_what_texts_name_where_a_step_writes_or_says_true():
    text = Generation("v", "because", (), -1.0)
    assert NamedTextsCard().card(VCR, text) == Card(texts={"question": QUESTION}, objects=(2,))
    assert NamedTextsCard().line(VCR, text) == "because"
    label = Prediction("v", {"label": "False", "probabilities": {"False": 0.75, "True": 0.25}}, 0.75)
    assert NamedTextsCard().card(VCR, label) == Card(
        bars=(Bar("False", 0.75, chosen=True), Bar("True", 0.25)), texts={"question": QUESTION}, objects=(2,)
    )
    assert NamedTextsCard().line(VCR, label) == "False"


@pytest.mark.parametrize(
    "value, line, right",
    [
        ({"box": [0, 0, 0.25, 0.5], "index": 3}, "overlap 50\u202f%", True),
        ({"box": [0, 0, 0.24, 0.5], "index": 3}, "overlap 48\u202f%", False),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 0}, "overlap 100\u202f%", True),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 1}, "a region of picture 2", False),
    ],
)
def test_refcoco_shows_the_overlap_with_the_right_box(value, line, right):
    example = Example("r", {"expression": "left"}, (), {}, {"box": LEFT})
    card = RegionCard().card(example, Prediction("r", value, 0.25))
    assert card == Card(line=line, confidence=0.25, right=right, box=tuple(value["box"]), right_box=LEFT)


def test_refcoco_without_the_right_box_and_in_the_terminal():
    prediction = Prediction("r", {"box": [0, 0.25, 0.5, 1], "index": 3}, 0.25)
    card = RegionCard().card(Example("r", {}), prediction)
    assert card == Card(line="a region", confidence=0.25, box=(0, 0.25, 0.5, 1))
    assert RegionCard().line(Example("r", {}), prediction) == "[0.000, 0.250, 0.500, 1.000]"


@pytest.mark.parametrize(
    "boxes, line, right, told",
    [
        ([RIGHT, LEFT], "right at rank 2 of 2", False, "[0.500, 0.500, 1.000, 1.000] and 1 more"),
        ([LEFT], "right at rank 1 of 1, overlap 100\u202f%", True, "[0.000, 0.000, 0.500, 0.500]"),
        ([RIGHT], "none of 1 boxes is right", False, "[0.500, 0.500, 1.000, 1.000]"),
        ([], "no box", False, "no box"),
    ],
)
def test_flickr30k_shows_the_rank_of_the_right_box(boxes, line, right, told):
    prediction = Prediction("p", [[*box] for box in boxes], 0.5)
    assert PhraseCard().card(CAPTION, prediction) == Card(
        line=line,
        confidence=0.5 if boxes else None,
        right=right,
        box=boxes[0] if boxes else None,
        right_box=LEFT,
        texts={"caption": (Piece("a "), Piece("red cat", marked=True), Piece(""))},
    )
    assert PhraseCard().line(CAPTION, prediction) == told


def test_flickr30k_without_the_right_box():
    card = PhraseCard().card(Example("p", {"caption": "a cat"}), Prediction("p", [[*LEFT], [*RIGHT]], 0.5))
    assert card == Card(line="2 boxes", confidence=0.5, box=LEFT)


class TestAnswerBars(RendererSuite):
    def config(self):
        return AnswerBars()

    def examples(self):
        return [Example("a", {"question": "what?"}, (), {}, {"answers": {"red": 1.0}}), Example("b", {})]

    def predictions(self, examples):
        value = {"label": "red", "probabilities": {"red": 0.7, "blue": 0.2}}
        return [Prediction(example.id, value, 0.7) for example in examples]


class TestTruthBars(TestAnswerBars):
    def config(self):
        return TruthBars()

    def examples(self):
        return [Example("a", {"statement": "so"}, (), {}, {"truth": False})]


class TestChoices(RendererSuite):
    def config(self):
        return Choices()

    def examples(self):
        return [VCR]

    def predictions(self, examples):
        return [Prediction("v", {"choice": 1, "probabilities": [0.25, 0.75]}, 0.75)]


class TestNamedTexts(RendererSuite):
    def config(self):
        return NamedTexts()

    def examples(self):
        return [VCR]


class TestChosenRegion(RendererSuite):
    def config(self):
        return ChosenRegion()

    def examples(self):
        return [Example("r", {"expression": "left"}, (), {}, {"box": LEFT})]

    def predictions(self, examples):
        return [Prediction("r", {"box": [0, 0, 1, 0.5], "index": 0}, 0.5)]


class TestPhraseBoxes(RendererSuite):
    def config(self):
        return PhraseBoxes()

    def examples(self):
        return [CAPTION]

    def predictions(self, examples):
        return [Prediction("p", [[*RIGHT], [*LEFT]], 0.5)]
