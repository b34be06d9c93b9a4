"""Labels of true and false statements."""

from mmgen_vl.truths import LABELS, right_label, truth_of

from mmgen.tensors import Example


def test_a_label_names_its_truth():
    assert [truth_of(label) for label in (*LABELS, "TRUE", True, False, "yes", 1, None)] == [
        *(False, True, True, True, False),
        *[None] * 3,
    ]
    assert [LABELS[truth] for truth in (False, True)] == ["False", "True"]


def test_a_card_knows_the_right_label():
    assert [right_label(Example("a", {}, labels=labels)) for labels in ({}, {"truth": False}, {"truth": True})] == [
        {},
        {"False": 1.0},
        {"True": 1.0},
    ]
