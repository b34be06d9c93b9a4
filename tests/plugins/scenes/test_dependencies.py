"""Dependencies of captions, as written by hand."""

import re

from kit.scenes import SMALL
from mmgen_scenes import dependencies


def test_captions_come_with_their_dependencies():
    """Stanford Dependencies, written by hand for every form of caption."""
    by_hand = {
        "a small red car on the left and two birds": "4det 4amod 4amod 0root 4prep 7det 5pobj 4cc 10num 4conj",
        "there are three big whales in the water and an orange cat": (
            "2expl 0root 5num 5amod 2nsubj 5prep 8det 6pobj 5cc 12det 12amod 5conj"
        ),
        "a picture of a tree and two dogs": "2det 0root 2prep 5det 3pobj 5cc 8num 5conj",
        "we see a yellow sun in the sky and a bus on the grass": (
            "2nsubj 0root 5det 5amod 2dobj 5prep 8det 6pobj 5cc 11det 5conj 11prep 14det 12pobj"
        ),
        "a cup near a drum": "2det 0root 2prep 5det 3pobj",
        "an umbrella to the left of a black house": "2det 0root 2prep 5det 3pobj 5prep 9det 9amod 6pobj",
    }
    for caption, words_ in by_hand.items():
        arcs = [f"{head}{relation}" for head, relation in dependencies.parse(caption)]
        assert arcs == words_.split(), caption
    for example in SMALL.build().split("test"):
        for caption, parse, phrases in zip(
            *(example.facts[name] for name in ("captions", "parses", "phrases")), strict=True
        ):
            assert len(parse) == len(caption.split()) and [head for head, _ in parse].count(0) == 1
            for first, end, _ in phrases:  # a noun phrase is connected: only one of its words depends on a word outside
                inside = {place for place, at in enumerate(starts(caption)) if first <= at < end}
                assert sum(parse[place][0] - 1 not in inside for place in inside) == 1, caption


def starts(caption):
    return [match.start() for match in re.finditer(r"\S+", caption)]
