"""The forms of drawn statements."""

import pytest
from mmgen_tasks.nlvr2.drawn_forms import FORMS

pytestmark = pytest.mark.slow


def test_every_form_has_its_name(data):
    words = {"side": "the", "both color": "both", "neither": "neither", "one with": "exactly", "two": "at"}
    words |= {"total": "there", "more": "there", "as many": "there", "each side": "the", "two colors": "one"}
    forms = {example.facts["form"]: example.inputs["statement"].split()[0] for example in data.split("train")}
    assert {*forms} == {*FORMS} and forms.items() >= words.items()
