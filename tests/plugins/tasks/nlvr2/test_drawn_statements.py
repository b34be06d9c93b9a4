"""Drawn statements: counting things gives the truth; forms are equally common."""

import re
from collections import Counter

import pytest
from kit.statements import NAMES, is_true
from mmgen_scenes.world import COLORS

pytestmark = pytest.mark.slow


def test_counting_things_gives_the_truth(data):
    for example in data.split("train"):
        assert is_true(example.inputs["statement"], *example.facts["things"]) == example.labels["truth"], example.id
        assert not re.search(r"\ban [^aeiou]|\ba [aeiou]", example.inputs["statement"])


def test_forms_of_statements_are_equally_common(data):
    kinds = re.compile(r"\b(" + "|".join(sorted({*NAMES, *COLORS}, key=len)[::-1]) + r")\b")
    forms = Counter(
        kinds.sub("_", re.sub(r"left|right", "side", example.inputs["statement"])).replace(" an ", " a ")
        for example in data.split("train")
        if example.id.split("-")[2] == "0"
    )
    assert len(forms) == 15, forms  # "exactly two" and "exactly three" are one of the fourteen forms
    assert min(forms.values()) > 3 and max(forms.values()) < 45, forms
