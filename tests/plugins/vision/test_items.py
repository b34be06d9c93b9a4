"""Items of VCR, and the examples made from them."""

import pytest
from mmgen_vision.items import Item, Text

from mmgen.examples import All

ANSWERS = tuple(Text(f"answer {number}", ((0, 6, (number,)),)) for number in range(4))
RATIONALES = tuple(Text(f"because {number}", ()) for number in range(4))
ITEM = Item("val-1", "7", ("person",), Text("what ?", ((0, 4, (0,)),)), ANSWERS, RATIONALES, 2, None)


def test_mentions_move_with_their_text():
    text = ITEM.question.then(ANSWERS[2])
    assert text.text == "what ? answer 2" and text.mentions == ((0, 4, (0,)), (7, 13, (2,)))
    assert text.text[7:13] == "answer"


@pytest.mark.parametrize(
    ("subtask", "names"),
    [
        ("answer", ["answer"]),
        ("rationale", ["rationale"]),
        ("both", ["answer", "rationale"]),
        ("every", ["answer", "rationale", "rationale-0", "rationale-1", "rationale-2", "rationale-3"]),
    ],
)
def test_examples_of_a_subtask(subtask, names):
    examples = list(ITEM.examples(subtask))
    assert [example.id for example in examples] == [f"val-1-{name}" for name in names]
    for example in examples:
        assert example.facts["item"] == "val-1" and len(example.labels["choices"]) == 4


def test_a_rationale_follows_the_given_answer():
    answer, rationale, *conditioned = ITEM.examples("every")
    assert answer.labels["choice"] == 2 and answer.inputs["question_mentions"] == All(((0, 4, (0,)),))
    assert rationale.inputs["question"] == "what ? answer 2" and "choice" not in rationale.labels  # not known
    assert [example.inputs["question"] for example in conditioned] == [f"what ? answer {number}" for number in range(4)]
    assert not list(ITEM._replace(answer=None).examples("rationale"))
