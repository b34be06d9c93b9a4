"""The card of Flickr30K Entities: the rank of the right box, and the phrase marked in its caption."""

import pytest
from mmgen_tasks.flickr30k.card import PhraseCard
from mmgen_tasks.flickr30k.config import PhraseBoxes

from mmgen.cards import Card, Piece
from mmgen.tensors import Example, Prediction
from mmgen.testing import RendererSuite

LEFT, RIGHT = (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0)
CAPTION = Example("p", {"caption": "a red cat"}, (), {}, {"phrases": ((2, 9, LEFT),)})


@pytest.mark.parametrize(
    "boxes, line, right, terminal_line",
    [
        ([RIGHT, LEFT], "right at rank 2 of 2", False, "[0.500, 0.500, 1.000, 1.000] and 1 more"),
        ([LEFT], "right at rank 1 of 1, overlap 100\u202f%", True, "[0.000, 0.000, 0.500, 0.500]"),
        ([RIGHT], "none of 1 boxes is right", False, "[0.500, 0.500, 1.000, 1.000]"),
        ([], "no box", False, "no box"),
    ],
)
def test_flickr30k_shows_the_rank_of_the_right_box(boxes, line, right, terminal_line):
    prediction = Prediction("p", [[*box] for box in boxes], 0.5)
    assert PhraseCard().card(CAPTION, prediction) == Card(
        line=line,
        confidence=0.5 if boxes else None,
        right=right,
        box=boxes[0] if boxes else None,
        right_box=LEFT,
        texts={"caption": (Piece("a "), Piece("red cat", marked=True), Piece(""))},
    )
    assert PhraseCard().line(CAPTION, prediction) == terminal_line


def test_flickr30k_without_the_right_box():
    card = PhraseCard().card(Example("p", {"caption": "a cat"}), Prediction("p", [[*LEFT], [*RIGHT]], 0.5))
    assert card == Card(line="2 boxes", confidence=0.5, box=LEFT)


class TestPhraseBoxes(RendererSuite):
    def config(self):
        return PhraseBoxes()

    def examples(self):
        return [CAPTION]

    def predictions(self, examples):
        return [Prediction("p", [[*RIGHT], [*LEFT]], 0.5)]
