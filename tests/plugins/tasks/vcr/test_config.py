"""The field of a choice, which a multiple choice fills in every row."""

from mmgen_tasks.vcr.config import MultipleChoice
from mmgen_text import Text


def test_an_input_reads_the_choice():
    choice = MultipleChoice(choice="answer")
    assert choice.provides() == ("answer", "answer_mentions")
    assert choice.errors({"reply": Text(fields=("answer",))}) == ""
    assert choice.errors({"question": Text(fields=("question",))}) == (
        'needs an input that reads \'answer\'; add one of type "text" with fields = ["answer"]'
    )
