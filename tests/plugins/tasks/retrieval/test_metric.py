"""Recall of pictures and captions: a plain count beside it, captions true of two pictures, ties, and chance."""

import itertools
import math
import random

import pytest
from kit.judged import Judges
from mmgen_tasks import Retrieval

from mmgen.errors import DataError
from mmgen.tensors import Example, Prediction

NAMES = [f"{side} R@{most}" for side in ("image", "text") for most in (1, 5, 10)]


def things(kind, color):
    return [{"kind": kind, "color": color, "size": "small", "place": "grass", "side": "left"}]


def scene(name, caption, kind="dog", color="red"):
    facts = {"things": things(kind, color), "captions": [caption]}
    return Example(name, {"image": name, "caption": (caption, "there is a tree")}, (), facts)


PLAIN = [Example(f"e{n}", {"image": f"i{n}", "caption": f"caption {n}"}) for n in range(4)]


def corner(n):
    return [float(n == place) for place in range(4)]


class TestRetrieval(Judges):
    scored_examples = PLAIN

    def config(self):
        return Retrieval()

    def value(self, n, example):
        return {"image": corner(n), "caption": corner(n)}


def scores(pairs, examples):
    """`pairs`: the vectors of the picture and of the caption of every example."""
    predictions = [
        Prediction(example.id, {"image": image, "caption": caption}, 0.0)
        for example, (image, caption) in zip(examples, pairs, strict=True)
    ]
    return Retrieval().build().score(predictions, examples)


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
    captions = [f"a {color if draw.random() < 0.5 else ''} {kind}" for kind, color in kinds]
    captions = [f"{caption} number {n}" for n, caption in enumerate(captions)]  # all different, so all are candidates
    examples = [scene(f"s{n}", caption, *kinds[n]) for n, caption in enumerate(captions)]
    pairs = [([draw.gauss(0, 1) for _ in range(5)], [draw.gauss(0, 1) for _ in range(5)]) for _ in kinds]

    def is_right(caption, picture):
        words, (kind, color) = captions[caption].split(), kinds[picture]
        return kind in words and (color in words or not {"red", "blue"} & {*words})

    expected = {most: recall(pairs, is_right, most) for most in (1, 5, 10)}
    values = scores(pairs, examples).values
    assert values == pytest.approx(
        {f"{side} R@{most}": expected[most][place] for place, side in enumerate(("image", "text")) for most in expected}
    )
    assert 0 < values["image R@1"] < values["image R@5"] < 100


def test_a_caption_is_right_for_every_scene_that_it_is_true_of():
    """The first caption finds the third scene, which has a red dog too; the second scene has a blue one."""
    examples = [scene("a", "a red dog"), scene("b", "a blue dog", color="blue"), scene("c", "a dog on the left")]
    pairs = [([0.0, 1.0], [1.0, 0.0]), ([-1.0, 0.0], [-1.0, 0.1]), ([1.0, 0.0], [0.0, -1.0])]
    result = scores(pairs, examples)
    assert result.per_example["image R@1"] == [100.0, 100.0, 100.0]  # "a dog on the left" is true of all
    assert result.notes == ("retrieval: a caption is right for 2.0 of 3 pictures on average",)
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
    far = [-1.0, 0.0]
    pairs = [([1.0, 0.0], [1.0, 0.0]) if n < 10 else (far, [1.0, 0.1]) for n in range(12)]
    result = scores(pairs, examples)
    assert result.per_example["image R@5"][10:] == [0.0, 0.0]  # five pictures come before the sixth
    assert result.per_example["image R@10"][10:] == [100.0, 100.0]


def test_equal_vectors_find_nothing():
    examples = [Example(f"e{n}", {"image": f"i{n}", "caption": f"c{n}"}) for n in range(12)]
    same = [0.123456, 0.654321, 0.3]
    assert set(scores([(same, same)] * 12, examples).values.values()) == {0.0}


def test_chance_is_the_share_of_all_orders_with_a_right_candidate():
    examples = [Example(f"e{n}", {"image": f"i{n}", "caption": caption}) for n, caption in enumerate("aabbbc")]
    references = Retrieval().build().references(examples)
    right = {"a": 2, "b": 3, "c": 1}
    shares = []
    for example in examples:
        count = right[example.inputs["caption"]]
        orders = list(itertools.permutations(range(6)))
        shares.append(sum(any(place < count for place in order[:5]) for order in orders) / len(orders))
    assert references.values["chance_image R@5"] == pytest.approx(100 * sum(shares) / 6)
    assert references.values["chance_image R@1"] == pytest.approx(100 * (2 * 2 / 6 + 3 * 3 / 6 + 1 / 6) / 6)
    assert references.values["chance_text R@1"] == pytest.approx(100 / 3)  # three different captions
    assert references.values["chance_text R@10"] == 100 and math.isclose(references.values["chance_image R@10"], 100)
    assert Retrieval().build().references([]) is None


def test_no_examples_have_no_recall():
    assert scores([], []).values == dict.fromkeys(NAMES)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"image": [1.0]}, "the prediction must be {\"caption\": ...}, not {'image': [1.0]}"),
        ("red", "the prediction must be {\"image\": ...}, not 'red'"),
        ({"image": 1, "caption": [1.0]}, "the vector of 'image' must be a list of numbers, not 1"),
        ({"image": [1.0], "caption": ["x"]}, "the vector of 'caption' must be a list of numbers, not ['x']"),
        (
            {"image": [1.0], "caption": [1.0, 0.0]},
            "the vector of 'caption' has 2 numbers, but that of 'image' in the first example has 1; compare vectors of "
            "one model",
        ),
    ],
)
def test_other_predictions_give_one_line(value, problem):
    with pytest.raises(DataError) as caught:
        Retrieval().build().score([Prediction("e0", value, 0.0)], PLAIN[:1])
    assert str(caught.value) == f"example 'e0': {problem}"
