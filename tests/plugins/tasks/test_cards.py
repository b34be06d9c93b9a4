"""The tasks' cards: bars of labels and choices, boxes and their overlap, and objects that texts name."""

import pytest
from mmgen_tasks import BoxesCard, ChoiceCard, LabelCard, RegionCard
from mmgen_tasks.cards import NamedObjects, label_card

from mmgen.cards import Bar, Card, Choice, Piece
from mmgen.examples import All, Example, Prediction
from mmgen.testing import RendererSuite

LEFT, RIGHT = (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0)
TRUTH = {"label": "True", "probabilities": {"False": 0.25, "True": 0.75}}
EXPRESSION = Example("r", {"expression": "left"}, labels={"box": LEFT})
CAPTION = Example("p", {"caption": "a red cat"}, labels={"phrases": ((2, 9, LEFT),)})
RED_CAT = {"caption": (Piece("a "), Piece("red cat", marked=True), Piece(""))}
VCR = Example(
    "v",
    {"question": "why is the dog here?", "question_mentions": All(((11, 14, (2,)),))},
    labels={"choices": ("the dog waits", "no"), "choice_mentions": (((4, 7, (2,)),), ()), "choice": 1},
)
QUESTION = {"question": (Piece("why is the "), Piece("dog", numbers=(1,)), Piece(" here?"))}
CHOICES = (Choice((Piece("the "), Piece("dog", numbers=(1,)), Piece(" waits"))), Choice((Piece("no"),), True))
CASES = {
    "an answer": (
        LabelCard,
        Example("q", {"question": "what is it?"}, labels={"answers": {"cat": 1.0, "dog": 0.3}}),
        {"label": "dog", "probabilities": {"dog": 0.75, "red": 0.2}},
        dict(bars=(Bar("dog", 0.75, chosen=True, right=True), Bar("red", 0.2)), right=True, answers=("cat", "dog")),
        "dog",
    ),
    "a truth": (
        LabelCard,
        Example("n", {"statement": "two dogs"}, labels={"truth": False}),
        TRUTH,
        dict(bars=(Bar("True", 0.75, chosen=True), Bar("False", 0.25, right=True)), right=False, answers=("False",)),
        "True",
    ),
    "a right region": (
        RegionCard,
        EXPRESSION,
        {"box": [0, 0, 0.25, 0.5], "index": 3},
        dict(line="overlap 50\u202f%", confidence=0.75, right=True, box=(0, 0, 0.25, 0.5), right_box=LEFT),
        "[0.000, 0.000, 0.250, 0.500]",
    ),
    "a region of another picture": (
        RegionCard,
        EXPRESSION,
        {"box": [*LEFT], "index": 3, "picture": 1},
        dict(line="a region of picture 2", confidence=0.75, right=False, box=LEFT, right_box=LEFT),
        "[0.000, 0.000, 0.500, 0.500]",
    ),
    "the second box": (
        BoxesCard,
        CAPTION,
        [[*RIGHT], [*LEFT]],
        dict(line="right at rank 2 of 2", confidence=0.75, right=False, box=RIGHT, right_box=LEFT, texts=RED_CAT),
        "[0.500, 0.500, 1.000, 1.000]",
    ),
    "no box": (BoxesCard, CAPTION, [], dict(line="no box", right=False, right_box=LEFT, texts=RED_CAT), "no box"),
    "a choice": (
        ChoiceCard,
        VCR,
        {"choice": 0, "probabilities": [0.75, 0.25]},
        dict(
            bars=(Bar("A", 0.75, chosen=True), Bar("B", 0.25, right=True)),
            right=False,
            choices=CHOICES,
            texts=QUESTION,
            objects=(2,),
        ),
        "the dog waits",
    ),
    "a label of named objects": (
        LabelCard,
        VCR,
        TRUTH,
        dict(bars=(Bar("True", 0.75, chosen=True), Bar("False", 0.25)), texts=QUESTION, objects=(2,)),
        "True",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_card_and_its_line(name):
    config, example, value, card, line = CASES[name]
    prediction = Prediction(example.id, value, 0.75)
    assert config().card(example, prediction) == Card(**card)
    assert config().line(example, prediction) == line


class Cards(RendererSuite):
    """Of a case."""

    case = ""

    def examples(self):
        return [CASES[self.case][1]]

    def predictions(self, examples):
        return [Prediction(example.id, CASES[self.case][2], 0.75) for example in examples]


class TestLabels(Cards):
    case = "an answer"

    def config(self):
        return LabelCard()


class TestRegionCards(Cards):
    case = "a right region"

    def config(self):
        return RegionCard()


class TestBoxes(Cards):
    case = "the second box"

    def config(self):
        return BoxesCard()


class TestChoices(Cards):
    case = "a choice"

    def config(self):
        return ChoiceCard()


def test_a_label_has_bars_of_its_likeliest_answers_and_the_right_answers():
    shares = {"a": 0.1, "b": 0.6, "c": 0.2, "d": 0.004, "e": 0.09, "f": 0.006}
    card = label_card(Prediction("x", {"label": "b", "probabilities": shares}, 0.6), {"e": 0.0, "g": 0.3, "c": 0.9})
    assert card == Card(
        bars=(Bar("b", 0.6, chosen=True), Bar("c", 0.2, right=True), Bar("a", 0.1), Bar("e", 0.09), Bar("f", 0.006)),
        right=False,
        answers=("c", "g"),
    )
    assert label_card(Prediction("x", {"label": "red"}, 0.7), {}).bars == (Bar("red", 0.7, chosen=True),)


def test_mentions_outside_of_a_text_are_left_out_and_objects_keep_their_numbers():
    named = NamedObjects()
    assert named.pieces("a cat", ((2, 9, (0,)), (2, 5, (3,)), (3, 4, (1,)))) == (
        Piece("a "),
        Piece("cat", numbers=(1,)),
    )
    assert named.pieces("both", ((0, 4, (0, 3)),)) == (Piece("both", numbers=(2, 1)),) and named.objects == (3, 0)
