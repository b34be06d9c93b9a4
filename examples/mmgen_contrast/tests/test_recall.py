"""Recall of pictures and captions: a plain count beside it, captions true of two pictures, ties, and chance."""

import itertools
import random

import pytest
from mmgen.errors import DataError
from mmgen.examples import Example, Prediction
from mmgen.testing import MetricSuite

from mmgen_contrast import Recall

NAMES = [f"{side} R@{most}" for side in ("image", "text") for most in (1, 5, 10)]
PLAIN = [Example(f"e{n}", {"image": f"i{n}", "caption": f"caption {n}"}) for n in range(4)]


def predictions_of(pairs, examples):
    """`pairs`: the vectors of the picture and of the caption of every example."""
    return [
        Prediction(example.id, {"image": image, "caption": caption}, 0.0)
        for example, (image, caption) in zip(examples, pairs, strict=True)
    ]


def scores(pairs, examples):
    return Recall().build().score(predictions_of(pairs, examples), examples)


class TestRecall(MetricSuite):
    def config(self):
        return Recall()

    def examples(self):
        return PLAIN

    def generations(self, examples):
        corners = [[float(n == place) for place in range(4)] for n in range(4)]
        return predictions_of([(corners[n], corners[n % 3]) for n, _ in enumerate(examples)], examples)


def scene(name, caption, kind="dog", color="red"):
    things = [{"kind": kind, "color": color, "size": "small", "place": "grass", "side": "left"}]
    return Example(name, {"image": name, "caption": (caption, "there is a tree")}, (), {"things": things})


def recall(pairs, is_right, most):
    """Both directions by their definition: look at the most similar candidates in turn."""

    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    hits = []
    for query in range(len(pairs)):
        pictures = sorted(range(len(pairs)), key=lambda p: -dot(pairs[query][1], pairs[p][0]))
        captions = sorted(range(len(pairs)), key=lambda c: -dot(pairs[query][0], pairs[c][1]))
        hits.append(
            (any(is_right(query, p) for p in pictures[:most]), any(is_right(c, query) for c in captions[:most]))
        )
    return [100 * sum(column) / len(pairs) for column in zip(*hits, strict=True)]


def test_recall_equals_a_plain_count():
    draw = random.Random(3)
    kinds = [(draw.choice(["dog", "cat", "ball"]), draw.choice(["red", "blue"])) for _ in range(24)]
    captions = [f"a {color if draw.random() < 0.5 else ''} {kind} number {n}" for n, (kind, color) in enumerate(kinds)]
    examples = [scene(f"s{n}", caption, *kinds[n]) for n, caption in enumerate(captions)]
    pairs = [([draw.gauss(0, 1) for _ in range(5)], [draw.gauss(0, 1) for _ in range(5)]) for _ in kinds]

    def is_right(caption, picture):
        words, (kind, color) = captions[caption].split(), kinds[picture]
        return kind in words and (color in words or not {"red", "blue"} & {*words})

    values = scores(pairs, examples).values
    for most in (1, 5, 10):
        expected = recall(pairs, is_right, most)
        assert [values[f"{side} R@{most}"] for side in ("image", "text")] == pytest.approx(expected)
    assert 0 < values["image R@1"] < values["image R@5"] < 100


def test_a_caption_is_right_for_every_scene_that_it_is_true_of():
    """The first caption finds the third scene, which has a red dog too; the second scene has a blue one."""
    examples = [scene("a", "a red dog"), scene("b", "a blue dog", color="blue"), scene("c", "a dog on the left")]
    pairs = [([0.0, 1.0], [1.0, 0.0]), ([-1.0, 0.0], [-1.0, 0.1]), ([1.0, 0.0], [0.0, -1.0])]
    result = scores(pairs, examples)
    assert result.per_example["image R@1"] == [100.0, 100.0, 100.0]  # "a dog on the left" is true of all
    assert result.notes == ("recall: a caption is right for 2.0 of 3 pictures on average",)
    unknown = [Example(example.id, example.inputs) for example in examples]
    assert scores(pairs, unknown).per_example["image R@1"] == [0.0, 100.0, 0.0]


def test_without_facts_equal_captions_are_right():
    examples = [Example(f"e{n}", {"image": f"i{n}", "caption": caption}) for n, caption in enumerate("aab")]
    pairs = [([0.0, 1.0], [1.0, 0.0]), ([1.0, 0.0], [1.0, 0.0]), ([0.0, 1.0], [0.0, 1.0])]
    result = scores(pairs, examples)
    assert result.per_example["image R@1"] == [100.0, 100.0, 0.0]  # the last: another picture is as similar
    assert result.per_example["text R@1"] == [0.0, 100.0, 100.0]


def test_a_picture_with_several_captions_is_one_candidate():
    examples = [Example(f"e{n}", {"image": f"i{n // 2}", "caption": f"c{n}"}) for n in range(12)]
    pairs = [([1.0, 0.0] if n < 10 else [-1.0, 0.0], [1.0, 0.01 * n]) for n in range(12)]
    result = scores(pairs, examples)
    assert result.per_example["image R@5"][10:] == [0.0, 0.0]  # five pictures come before the sixth
    assert result.per_example["image R@10"][10:] == [100.0, 100.0]


def test_equal_vectors_find_nothing_and_no_examples_have_no_recall():
    examples = [Example(f"e{n}", {"image": f"i{n}", "caption": f"c{n}"}) for n in range(12)]
    same = [0.123456, 0.654321, 0.3]
    assert set(scores([(same, same)] * 12, examples).values.values()) == {0.0}
    assert scores([], []).values == dict.fromkeys(NAMES)
    assert Recall().build().references([]) is None


def test_chance_is_the_share_of_all_orders_with_a_right_candidate():
    examples = [Example(f"e{n}", {"image": f"i{n}", "caption": caption}) for n, caption in enumerate("aabbbc")]
    values, right = Recall().build().references(examples).values, {"a": 2, "b": 3, "c": 1}
    orders, shares = list(itertools.permutations(range(6))), []
    for example in examples:
        count = right[example.inputs["caption"]]
        shares.append(sum(any(place < count for place in order[:5]) for order in orders) / len(orders))
    assert values["chance_image R@5"] == pytest.approx(100 * sum(shares) / 6)
    assert values["chance_image R@1"] == pytest.approx(100 * (2 * 2 / 6 + 3 * 3 / 6 + 1 / 6) / 6)
    assert values["chance_text R@1"] == pytest.approx(100 / 3)  # three different captions
    assert values["chance_text R@10"] == values["chance_image R@10"] == 100


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"image": [1.0]}, 'every prediction must be {"caption": [numbers]}, with as many numbers as all others'),
        ("red", 'every prediction must be {"image": [numbers]}, with as many numbers as all others'),
        ({"image": 1, "caption": [1.0]}, 'every prediction must be {"image": [numbers]}, with as many numbers as all'),
        ({"image": [1.0], "caption": [1.0, 0.0]}, "'image' and 'caption' have vectors of different lengths"),
    ],
)
def test_other_predictions_give_one_line(value, problem):
    with pytest.raises(DataError) as caught:
        Recall().build().score([Prediction("e0", value, 0.0)], PLAIN[:1])
    assert str(caught.value).startswith(problem)
