"""VCR's cards: choices, and texts whose words name objects."""

from mmgen_tasks.vcr.card import ChoiceCard, NamedTextsCard
from mmgen_tasks.vcr.config import Choices, NamedTexts

from mmgen.cards import Bar, Card, Choice, Piece
from mmgen.tensors import All, Example, Generation, Prediction
from mmgen.testing import RendererSuite

VCR = Example(
    "v",
    {"question": "why is the dog here?", "question_mentions": All(((11, 14, (2,)),))},
    (),
    {},
    {"choices": ("the dog waits", "no"), "choice_mentions": (((4, 7, (2,)),), ()), "choice": 1},
)
QUESTION = (Piece("why is the "), Piece("dog", numbers=(1,)), Piece(" here?"))


def test_vcr_shows_choices_and_numbers_the_objects_of_texts():
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


def test_vcr_numbers_objects_where_a_step_generates_or_classifies():
    text = Generation("v", "because", (), -1.0)
    assert NamedTextsCard().card(VCR, text) == Card(texts={"question": QUESTION}, objects=(2,))
    assert NamedTextsCard().line(VCR, text) == "because"
    label = Prediction("v", {"label": "False", "probabilities": {"False": 0.75, "True": 0.25}}, 0.75)
    assert NamedTextsCard().card(VCR, label) == Card(
        bars=(Bar("False", 0.75, chosen=True), Bar("True", 0.25)), texts={"question": QUESTION}, objects=(2,)
    )
    assert NamedTextsCard().line(VCR, label) == "False"


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
