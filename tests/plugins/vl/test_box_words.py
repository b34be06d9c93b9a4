"""Boxes as words."""

from mmgen_vl.box_words import all_words, box_in_words


def test_a_box_in_tenths():
    assert box_in_words([0.0, 0.26, 0.999, 1.0]) == "left0 top2 right9 bottom9"
    assert box_in_words([-0.2, 0.5, 0.1, 1.5]) == "left0 top5 right1 bottom9"


def test_every_word_of_a_box():
    words = list(all_words())
    assert len({*words}) == 40 and words[0] == "left0" and words[-1] == "bottom9"
    assert {*box_in_words([0.4, 0.2, 0.8, 0.7]).split()} <= {*words}
