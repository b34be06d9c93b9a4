"""VQA's card: answers as bars, and the answers of people."""

from mmgen_tasks.vqa.card import AnswerCard
from mmgen_tasks.vqa.config import AnswerBars

from mmgen.cards import Bar, Card
from mmgen.tensors import Example, Prediction
from mmgen.testing import RendererSuite


def test_vqa_shows_answers_as_bars_and_marks_answers_of_people():
    example = Example("q", {"question": "what is it?"}, (), {}, {"answers": {"cat": 1.0, "dog": 0.3}})
    prediction = Prediction("q", {"label": "dog", "probabilities": {"dog": 0.7, "red": 0.2}}, 0.7)
    assert AnswerCard().card(example, prediction) == Card(
        bars=(Bar("dog", 0.7, chosen=True, right=True), Bar("red", 0.2)), right=True, answers=("cat", "dog")
    )
    assert AnswerCard().line(example, prediction) == "dog"


class TestAnswerBars(RendererSuite):
    def config(self):
        return AnswerBars()

    def examples(self):
        return [Example("a", {"question": "what?"}, (), {}, {"answers": {"red": 1.0}}), Example("b", {})]

    def predictions(self, examples):
        value = {"label": "red", "probabilities": {"red": 0.7, "blue": 0.2}}
        return [Prediction(example.id, value, 0.7) for example in examples]
