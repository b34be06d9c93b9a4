"""Questions about drawn scenes: how they are written, answered and told as stories."""

import re
from random import Random

import pytest
from kit.scenes import SMALL
from mmgen_scenes import Scenes, SceneStories, dependencies, questions
from mmgen_scenes.answering import FORMS, Verdict, find_answers
from mmgen_scenes.grammar import mentions, words
from mmgen_scenes.world import COLORS, KINDS, sample
from mmgen_tasks import SceneAnswers

from mmgen.testing import DatasetSuite


@pytest.mark.parametrize("seed", range(5))
def test_questions_are_different_and_of_several_forms(seed):
    rng = Random(seed)
    scene = sample(rng, "s", 4, 6)
    texts = questions.write(rng, scene, (0, 1), 5)
    assert len({text.text for text in texts}) == 5 and all(text.text.endswith("?") for text in texts)
    openings = [" ".join(text.text.split()[:2]) for text in texts]
    assert len({*openings}) > 1
    for text in texts:
        topic, *partners = text.groups
        assert topic not in partners and all(0 <= group < len(scene.groups) for group in text.groups)


def thing(kind, color, x, y=0.8, size="big", place="grass", facing="right"):
    side = "left" if x < 0.4 else "right" if x > 0.6 else ""
    half = 0.1 if size == "big" else 0.05
    box = [x - half, y - half, x + half, y + half]
    return {"kind": kind, "color": color, "size": size, "place": place, "side": side, "facing": facing, "box": box}


SCENE = (
    thing("dog", "brown", 0.15),
    thing("ball", "red", 0.40, size="small"),
    thing("cup", "blue", 0.8, size="small"),
    thing("bird", "blue", 0.2, 0.2, "small", "sky", "left"),
    thing("bird", "blue", 0.8, 0.2, "small", "sky", "left"),
    thing("car", "red", 0.85, 0.6, facing="left"),
)


@pytest.mark.parametrize(
    ("question", "form", "answers"),
    [
        ("what color is the dog?", "what color", {"brown"}),
        ("What color are the birds ?", "what color", {"blue"}),
        ("how many birds are in the sky?", "how many", {"2"}),
        ("where is the ball?", "where", {"on the grass"}),
        ("where are the birds?", "where", {"in the sky"}),
        ("on which side is the dog?", "which side", {"left"}),
        ("is the dog bigger than the ball?", "is it bigger", {"yes"}),
        ("is the dog smaller than the ball?", "is it bigger", {"no"}),
        ("is the dog to the left of the ball?", "is it beside", {"yes"}),
        ("is the dog near the cup?", "is it beside", {"no"}),
        ("is there a red ball?", "is there", {"yes"}),
        ("is there a green tree?", "is there", {"no"}),
        ("is there a red ball near the dog?", "is there near", {"yes"}),
        ("is there a kite near the dog?", "is there near", {"no"}),
        ("what is next to the dog?", "what is beside", {"ball"}),
        ("what is to the right of the ball?", "what is beside", {"cup", "bird", "car"}),
        ("what is the dog looking at?", "what is it looking at", {"ball"}),
        ("which way is the car going?", "which way", {"left"}),
    ],
)
def test_answers(question, form, answers):
    assert find_answers(question, SCENE) == Verdict(form, frozenset(answers))
    assert find_answers(question, SCENE).answerable is True


@pytest.mark.parametrize(
    ("question", "form", "reason"),
    [
        ("what color is the cat?", "what color", "not there"),
        ("what color is the zeppelin?", "what color", "not there"),
        ("where is the blue dog?", "where", "not there"),
        ("how many kites are there?", "how many", "not there"),
        ("is there a dog near the tree?", "is there near", "not there"),
        ("what is to the left of the dog?", "what is beside", "not there"),
        ("what is the ball looking at?", "what is it looking at", "not there"),
        ("which way is the dog going?", "which way", "not there"),
        ("on which side are the birds?", "which side", "in doubt"),
        ("is the dog bigger than the car?", "is it bigger", "in doubt"),
        ("is the dog above the ball?", "is it beside", "in doubt"),
        ("is the cup near the ball?", "is it beside", "in doubt"),
        ("why is the dog brown?", "", "no question"),
        ("the dog", "", "no question"),
        ("", "", "no question"),
    ],
)
def test_reasons(question, form, reason):
    verdict = find_answers(question, SCENE)
    assert verdict == Verdict(form, reason=reason)
    assert verdict.answerable is (None if reason == "in doubt" else False)


@pytest.mark.slow
def test_the_answers_are_those_of_the_data_set():
    forms = set()
    for example in SceneAnswers(train_size=150, val_size=1, test_size=1).build().split("train"):
        verdict = find_answers(example.inputs["question"], example.facts["things"])
        assert verdict.form == example.facts["question_type"], example.inputs
        assert example.inputs["answer"] in verdict.answers, (example.inputs, verdict)
        forms.add(verdict.form)
    assert forms == {*FORMS}


def test_a_question_about_its_own_scene_never_names_what_is_not_there():
    """The data set `scenes` asks what a thing looks at even if it looks at nothing, and nothing else that is false."""
    reasons = {
        (verdict.form, verdict.reason)
        for example in Scenes(train_size=100, val_size=1, test_size=1).build().split("train")
        for target in example.targets
        if not (verdict := find_answers(target, example.facts["things"])).answers
    }
    assert {form for form, reason in reasons if reason == "not there"} <= {"what is it looking at"}
    assert "no question" not in {reason for _, reason in reasons}


NAMES = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}


@pytest.mark.slow
class TestSceneStories(DatasetSuite):
    def config(self):
        return SceneStories(train_size=8, val_size=2, test_size=2)


@pytest.fixture(scope="module")
def stories():
    return SceneStories(train_size=300, val_size=1, test_size=1).build()


def middle(thing):
    x0, y0, x1, y1 = thing["box"]
    return (x0 + x1) / 2, (y0 + y1) / 2


def is_true(sentence, things):
    """Whether a sentence is true of the things, beyond the properties in its noun phrases."""

    def named(noun):
        return [thing for thing in things if thing["kind"] == NAMES[noun]]

    if match := re.fullmatch(rf"the .*?(\w+)(?: (?:on|in) the \w+)? (?:is|are) ({'|'.join(COLORS)})", sentence):
        return {thing["color"] for thing in named(match[1])} == {match[2]}
    if match := re.fullmatch(r"the .*?(\w+) (?:is|are) (?:on|in) the (\w+)", sentence):
        return all(match[2] in (thing["place"], thing["side"]) for thing in named(match[1]))
    if match := re.fullmatch(r"the .*?(\w+) (?:is|are) (bigger|smaller) than the (\w+)", sentence):
        sizes = [{thing["size"] for thing in named(match[i])} for i in (1, 3)]
        return sizes == ([{"big"}, {"small"}] if match[2] == "bigger" else [{"small"}, {"big"}])
    if match := re.fullmatch(r"the .*?(\w+) is going to the (left|right)", sentence):
        return [thing["facing"] for thing in named(match[1])] == [match[2]]
    if match := re.fullmatch(r"(?:the|an?) .*?(\w+) (?:is )?(near|to the left of|to the right of) .*?(\w+)", sentence):
        ((a,), (b,)) = named(match[1]), named(match[3])
        (ax, ay), (bx, by) = middle(a), middle(b)
        if match[2] == "near":
            return (ax - bx) ** 2 + (ay - by) ** 2 < 0.36**2
        return ax < bx if match[2] == "to the left of" else ax > bx
    if match := re.fullmatch(r"the .*?(\w+) is looking at the (\w+)", sentence):
        ((a,), (b,)) = named(match[1]), named(match[2])
        return (middle(b)[0] > middle(a)[0]) == (a["facing"] == "right")
    return re.fullmatch(
        r"(?:there (?:is|are) |a picture of |we see )?(?:an?|two|three) .* and (?:an?|two|three) .*", sentence
    )


@pytest.mark.slow
def test_every_sentence_is_true(stories):
    for example in stories.split("train"):
        for sentence in example.inputs["caption"].split(". "):
            sentence = sentence.removesuffix(".")
            named = mentions(sentence)
            assert named and all(mention.holds(example.facts["things"]) for mention in named), sentence
            assert is_true(sentence, example.facts["things"]), sentence


@pytest.mark.slow
def test_stories_have_sentences_and_neither_pictures_nor_targets(stories):
    for example in stories.split("train"):
        assert set(example.inputs) == {"caption"} and not example.targets and not example.labels
        assert example.inputs["caption"].count(".") == 6
    assert list(stories.pictures()) == []
    lengths = [len(words(example.inputs["caption"])) for example in stories.split("train")]
    assert 40 < sum(lengths) / len(lengths) < 50 and max(lengths) < 80
    assert SceneStories(sentences=1, train_size=1).build().split("train")[0].inputs["caption"].count(".") == 1


@pytest.mark.slow
def test_words_are_those_of_captions_and_questions(stories):
    story_words = {word for example in stories.split("train") for word in words(example.inputs["caption"])}
    known = set()
    for example in Scenes(train_size=300).build().split("train"):
        known |= {word for text in (*example.inputs["caption"], *example.targets) for word in words(text)}
    assert story_words <= known, story_words - known


@pytest.mark.slow
def test_no_story_is_about_a_drawn_scene(stories):
    drawn = {repr(example.facts["things"]) for example in SceneAnswers(train_size=300).build().split("train")}
    assert not drawn & {repr(example.facts["things"]) for example in stories.split("train")}


@pytest.mark.slow
def test_sizes_do_not_change_earlier_stories(stories):
    assert SceneStories(train_size=3).build().split("train") == stories.split("train")[:3]


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
