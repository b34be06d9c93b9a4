"""Stories: every sentence is true of a scene, in the words of captions and questions."""

import re

import pytest
from mmgen_scenes import Scenes, SceneStories
from mmgen_scenes.grammar import mentions, words
from mmgen_scenes.world import COLORS, KINDS
from mmgen_tasks import SceneAnswers

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow

NAMES = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}


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


def test_every_sentence_is_true(stories):
    for example in stories.split("train"):
        for sentence in example.inputs["caption"].split(". "):
            sentence = sentence.removesuffix(".")
            named = mentions(sentence)
            assert named and all(mention.holds(example.facts["things"]) for mention in named), sentence
            assert is_true(sentence, example.facts["things"]), sentence


def test_stories_have_sentences_and_neither_pictures_nor_targets(stories):
    for example in stories.split("train"):
        assert set(example.inputs) == {"caption"} and not example.targets and not example.labels
        assert example.inputs["caption"].count(".") == 6
    assert list(stories.pictures()) == []
    lengths = [len(words(example.inputs["caption"])) for example in stories.split("train")]
    assert 40 < sum(lengths) / len(lengths) < 50 and max(lengths) < 80
    assert SceneStories(sentences=1, train_size=1).build().split("train")[0].inputs["caption"].count(".") == 1


def test_words_are_those_of_captions_and_questions(stories):
    story_words = {word for example in stories.split("train") for word in words(example.inputs["caption"])}
    known = set()
    for example in Scenes(train_size=300).build().split("train"):
        known |= {word for text in (*example.inputs["caption"], *example.targets) for word in words(text)}
    assert story_words <= known, story_words - known


def test_no_story_is_about_a_drawn_scene(stories):
    drawn = {repr(example.facts["things"]) for example in SceneAnswers(train_size=300).build().split("train")}
    assert not drawn & {repr(example.facts["things"]) for example in stories.split("train")}


def test_sizes_do_not_change_earlier_stories(stories):
    assert SceneStories(train_size=3).build().split("train") == stories.split("train")[:3]
