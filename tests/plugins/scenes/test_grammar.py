"""The grammar of drawn scenes: reads the texts of the templates, judges other texts, and never fails."""

from itertools import product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmgen_scenes.drawn import things
from mmgen_scenes.grammar import Mention, discovers, is_relevant, mentions
from mmgen_scenes.phrases import definite_phrase, noun, places, single_phrase
from mmgen_scenes.questions import is_well_formed
from mmgen_scenes.world import sample

SCENE = (
    {"kind": "dog", "color": "brown", "size": "big", "place": "grass", "side": "left"},
    {"kind": "ball", "color": "red", "size": "small", "place": "grass", "side": ""},
    {"kind": "bird", "color": "blue", "size": "small", "place": "sky", "side": "left"},
    {"kind": "bird", "color": "blue", "size": "small", "place": "sky", "side": "right"},
    {"kind": "umbrella", "color": "orange", "size": "big", "place": "grass", "side": "right"},
)
CAPTION = "a brown dog on the left and a ball"


def test_phrases_are_read_as_they_were_meant():
    """With every choice of properties, in the singular and the plural."""
    for seed in range(30):
        scene = sample(Random(seed), "s", 5, 6)
        for group in scene.groups:
            options = ["", group.color], ["", group.size], ["", *places(scene, group)]
            for color, size, place in product(*options):
                (mention,) = mentions(definite_phrase(group, color, size, place))
                named = Mention(
                    group.kind.name, 1 + group.plural, *((word,) * bool(word) for word in (color, size, place))
                )
                assert mention == named and sum(map(mention.fits, things(scene))) == len(group.members)
            assert mentions(single_phrase(group, group.color)) == (Mention(group.kind.name, colors=(group.color,)),)
            assert mentions(f"how many {noun(group)} are there?")[0].least == 1


@pytest.mark.slow
def test_every_question_is_well_formed_and_no_caption_is(examples):
    for example in examples:
        assert all(
            is_well_formed(question) and is_relevant(question, example.facts["things"]) for question in example.targets
        )
        assert not any(map(is_well_formed, example.inputs["caption"]))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what color is the dog?", [Mention("dog")]),
        ("Where is the SMALL red ball ?", [Mention("ball", colors=("red",), sizes=("small",))]),
        ("how many birds are in the sky?", [Mention("bird", least=1, places=("sky",))]),
        ("are the birds bigger than the dog?", [Mention("bird", least=2), Mention("dog")]),
        ("three blue birds", [Mention("bird", least=3, colors=("blue",))]),
        ("a ball is on the sand", [Mention("ball", places=("sand",))]),
        ("is there an orange umbrella near the bus?", [Mention("umbrella", colors=("orange",)), Mention("bus")]),
        ("what color is the zebra?", [Mention("zebra")]),  # a thing that no scene has
        ("red blue", []),
        ("dog dog", [Mention("dog"), Mention("dog")]),
        ("the red blue dog", [Mention("dog", colors=("red", "blue"))]),
        ("", []),
    ],
)
def test_mentions(text, named):
    assert list(mentions(text)) == named


@pytest.mark.parametrize(
    "question",
    [
        "",
        "?",
        "what color is the dog",  # no question mark
        "what color is the?",
        "what color is dog?",
        "what color are the dog?",  # number
        "what color is the dogs?",
        "how many dog are there?",
        "how many the dogs are there?",
        "how many dogs?",
        "is there a orange ball near the dog?",  # article
        "is there an red ball near the dog?",
        "is there the ball near the dog?",
        "is the dog the dog?",
        "is the dog bigger than?",
        "what is the dog?",
        "what what is next to the dog?",
        "what is next to the dog? what",
        "the two dog looking at?",
        "where is the ball red?",
        "which way is the plane going going?",
    ],
)
def test_not_well_formed(question):
    assert not is_well_formed(question)


@pytest.mark.parametrize(
    ("question", "expected_relevance", "expected_discovery"),
    [
        ("what color is the ball?", True, False),
        ("what color are the birds?", True, True),
        ("is the umbrella bigger than the ball?", True, True),  # one thing without a caption is enough
        ("is the dog bigger than the ball?", True, False),
        ("where is the orange umbrella?", True, True),
        ("where is the red umbrella?", False, False),  # another colour
        ("where is the small umbrella?", False, False),  # another size
        ("what color is the umbrella on the right?", True, True),
        ("what color is the umbrella on the left?", False, False),  # another place
        ("what color is the umbrella on the snow?", False, False),
        ("what color are the dogs?", False, False),  # there is only one dog
        ("how many dogs are there?", True, False),  # a question about a number is relevant for one thing too
        ("how many cats are there?", False, False),
        ("is the cat near the dog?", False, False),  # the scene must have all named things
        ("is the red dog near the ball?", False, False),
        ("is the dog to the right of the ball?", True, False),  # asked, not claimed
        ("three birds", False, False),
        ("what is there?", False, False),  # names nothing
        ("", False, False),
    ],
)
def test_relevance_and_discovery(question, expected_relevance, expected_discovery):
    assert is_relevant(question, SCENE) is expected_relevance
    assert discovers(question, SCENE, CAPTION) is expected_discovery


@pytest.mark.slow
@given(st.text())
def test_any_text_can_be_read(text):
    mentions(text)
    is_well_formed(text)
    assert not discovers(text, SCENE, CAPTION) or is_relevant(text, SCENE)
