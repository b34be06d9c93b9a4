"""The grammar of drawn scenes: reads the texts of the templates, judges other texts, and never fails."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmgen_scenes import Scenes, captions, questions
from mmgen_scenes.grammar import Mention, discovers, is_relevant, is_well_formed, mentions, words
from mmgen_scenes.world import COLORS, KINDS, SIZES, sample

SCENE = (
    {"kind": "dog", "color": "brown", "size": "big", "place": "grass", "side": "left"},
    {"kind": "ball", "color": "red", "size": "small", "place": "grass", "side": ""},
    {"kind": "bird", "color": "blue", "size": "small", "place": "sky", "side": "left"},
    {"kind": "bird", "color": "blue", "size": "small", "place": "sky", "side": "right"},
    {"kind": "umbrella", "color": "orange", "size": "big", "place": "grass", "side": "right"},
)
CAPTION = "a brown dog on the left and a ball"


@pytest.fixture(scope="module")
def scene_texts():
    """The scene, the captioned groups, the captions and the questions of 400 scenes."""
    from random import Random

    texts_of_scenes = []
    for i in range(400):
        rng = Random(i)
        scene = sample(rng, str(i), 5, 6)
        captioned = tuple(rng.sample(range(len(scene.groups)), 2))
        texts_of_scenes.append(
            (scene, captioned, captions.write(rng, scene, captioned, 5), questions.write(rng, scene, captioned, 4))
        )
    return texts_of_scenes


def test_parsing_a_text_gives_the_mentions_it_was_made_from(scene_texts):
    for _, _, caption_texts, question_texts in scene_texts:
        for text in (*caption_texts, *question_texts):
            assert mentions(text.text) == tuple(phrase.mention for phrase in text.phrases), text.text


def test_every_question_is_well_formed_and_no_caption_is(scene_texts):
    for _, _, caption_texts, question_texts in scene_texts:
        assert all(is_well_formed(question.text) for question in question_texts)
        assert not any(is_well_formed(caption.text) for caption in caption_texts)


def test_questions_have_a_natural_length(scene_texts):
    lengths = [len(words(question.text)) - 1 for *_, question_texts in scene_texts for question in question_texts]
    assert min(lengths) >= 5 and max(lengths) <= 10
    assert sum(length <= 9 for length in lengths) / len(lengths) > 0.95


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what color is the dog?", [Mention("dog")]),
        ("Where is the SMALL red ball ?", [Mention("ball", colors=("red",), sizes=("small",))]),
        ("how many birds are there?", [Mention("bird", plural=True, least=1)]),
        ("how many birds are in the sky?", [Mention("bird", plural=True, least=1, places=("sky",))]),
        ("are the birds bigger than the dog?", [Mention("bird", plural=True, least=2), Mention("dog")]),
        ("three blue birds", [Mention("bird", plural=True, least=3, colors=("blue",))]),
        ("what color is the dog on the left?", [Mention("dog", places=("left",))]),
        ("a ball is on the sand", [Mention("ball", places=("sand",))]),
        ("is the dog to the left of the ball?", [Mention("dog"), Mention("ball")]),
        ("is there an orange umbrella near the bus?", [Mention("umbrella", colors=("orange",)), Mention("bus")]),
        ("a picture of a bird", [Mention("bird")]),
        ("what color is the zebra?", [Mention("zebra")]),  # a thing that no scene has
        ("red blue", []),
        ("what color is the", []),
        ("the", []),
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
        "what color is the dog?",
        "what color are the small birds in the sky ?",
        "where is the red ball?",
        "how many red birds are there?",
        "how many birds are in the sky?",
        "is the dog bigger than the birds?",
        "are the birds smaller than the ball?",
        "is the red ball to the right of the dog?",
        "is there a ball near the dog?",
        "is there an orange ball near the birds?",
        "what is next to the dog?",
        "what is the dog looking at?",
        "which way is the bus going?",
    ],
)
def test_well_formed(question):
    assert is_well_formed(question)


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


VOCABULARY = sorted(
    {
        word
        for example in Scenes(train_size=200, val_size=1, test_size=1).build().split("train")
        for text in (*example.inputs["caption"], *example.targets)
        for word in words(text)
    }
)


@given(st.lists(st.sampled_from([*VOCABULARY, "zebra", "##s"]), max_size=14))
def test_any_string_of_its_words_can_be_read(tokens):
    text = " ".join(tokens)
    named = mentions(text)
    assert [mention.kind for mention in named if mention.kind in KINDS] == [
        kind.name for token in tokens for kind in KINDS.values() if token in (kind.name, kind.plural)
    ]
    if is_well_formed(text):
        assert named and all(mention.kind in KINDS for mention in named)


@given(
    st.sampled_from(sorted(KINDS)),
    st.sampled_from(["", *COLORS]),
    st.sampled_from(["", *SIZES]),
    st.sampled_from(["", "on the left", "on the right", "in the sky", "on the water"]),
)
def test_a_noun_phrase_gives_its_properties(kind, color, size, place):
    (mention,) = mentions(" ".join(filter(None, ("is the", size, color, kind, place, "near it?"))))
    assert mention == Mention(
        kind, colors=(color,) * bool(color), sizes=(size,) * bool(size), places=(place.split()[-1],) if place else ()
    )
