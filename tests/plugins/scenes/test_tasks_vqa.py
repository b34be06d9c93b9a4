"""Drawn questions and their answers."""

import math
import re
from collections import Counter, defaultdict

import pytest
from mmgen_scenes import Scenes
from mmgen_scenes.questions import find_answers
from mmgen_scenes.tasks import SceneAnswers
from mmgen_scenes.tasks_answers import ANSWERS
from mmgen_scenes.world import COLORS, GROUNDS, KINDS

from mmgen.testing import DatasetSuite

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return SceneAnswers(train_size=700, val_size=20, test_size=100).build()


class TestSceneAnswers(DatasetSuite):
    def config(self):
        return SceneAnswers(train_size=8, val_size=2, test_size=2, image_size=64)


def test_examples_have_the_shape_of_vqa(data):
    first = data.split("train")[0]
    assert set(first.inputs) == {"image", "question", "answer"} and set(first.labels) == {"answers"}
    assert (first.id, first.inputs["image"]) == ("train-00000-0", "train-00000")
    assert len(first.targets) == 1 and len(data.split("test")[0].targets) == 10
    assert data.vocabularies() == {"answers": ANSWERS} and len(set(ANSWERS)) == 47


def test_scenes_are_those_of_the_captions(data):
    plain = Scenes(train_size=3, val_size=1, test_size=1).build()
    ours = {picture.key: picture for picture, _ in zip(data.pictures(), range(3), strict=False)}
    for picture in list(plain.pictures())[:3]:
        assert ours[picture.key].boxes == picture.boxes and ours[picture.key].region_names == picture.region_names
        assert ours[picture.key].load().tobytes() == picture.load().tobytes()


def test_sizes_do_not_change_earlier_examples(data):
    fewer = SceneAnswers(train_size=3, val_size=1, test_size=2).build()
    for name in fewer.splits():
        assert fewer.split(name) == data.split(name)[: len(fewer.split(name))]
    assert SceneAnswers(train_size=3, seed=1).build().split("train") != fewer.split("train")


def test_the_number_of_questions_per_scene():
    for questions, things in ((6, 4), (1, 7)):
        config = SceneAnswers(train_size=40, questions=questions, min_things=things, max_things=things)
        counts = Counter(example.inputs["image"] for example in config.build().split("train"))
        assert set(counts.values()) == {questions}


def test_nine_people_agree_and_one_gives_a_near_miss(data):
    for example in data.split("test"):
        (answer, right_count), (wrong_answer, wrong_count) = Counter(example.targets).most_common()
        assert (right_count, wrong_count) == (9, 1) and {answer, wrong_answer} <= {*ANSWERS}
        assert example.labels["answers"] == {answer: 1.0, wrong_answer: 0.3}
    places = Counter(
        next(i for i, answer in enumerate(example.targets) if example.targets.count(answer) == 1)
        for example in data.split("test")
    )
    assert len(places) == 10


def test_a_share_of_the_questions_names_what_is_not_there():
    plain = SceneAnswers(train_size=40, val_size=1, test_size=10)
    changed = plain.model_copy(update={"unanswerable": 0.3}).build()
    assert changed.vocabularies() == {"answers": (*ANSWERS, "unanswerable")}
    pairs = [*zip(plain.build().split("train"), changed.split("train"), strict=True)]
    replaced = [example for before, example in pairs if before != example]
    assert 0.2 < len(replaced) / len(pairs) < 0.4
    for example in replaced:
        verdict = find_answers(example.inputs["question"], example.facts["things"])
        assert (verdict.reason, verdict.form) == ("not there", example.facts["question_type"])
        assert example.inputs["answer"] == example.facts["answer_type"] == "unanswerable"
    tested = [example for example in changed.split("test") if example.inputs["answer"] == "unanswerable"]
    assert tested and all(Counter(example.targets)["unanswerable"] == 9 for example in tested)


def test_types_of_answers(data):
    for example in (example for name in data.splits() for example in data.split(name)):
        answer = max(example.labels["answers"], key=example.labels["answers"].get)
        kind = "yes/no" if answer in ("yes", "no") else "number" if answer.isdigit() else "other"
        assert example.facts["answer_type"] == kind and example.facts["image"] == example.inputs["image"]


NOUN = (
    "(?:"
    + "|".join(sorted((name for kind in KINDS.values() for name in (kind.name, kind.plural)), key=len)[::-1])
    + ")"
)


SINGULAR = {name: kind.name for kind in KINDS.values() for name in (kind.name, kind.plural)}


PHRASE = rf"(?:the|an?) (?:(?:small|big|{'|'.join(COLORS)}) )*{NOUN}(?: (?:on|in) the (?!.*side)\w+)?"


@pytest.fixture(scope="module")
def examples(data):
    return [example for name in data.splits() for example in data.split(name)]


def expected_answer(question, things):
    """The answer, from the question's words and the things; None where people may differ."""

    def find_things(phrase):
        words = phrase.split()
        noun = next(word for word in words if word in SINGULAR)
        matching_things = [thing for thing in things if thing["kind"] == SINGULAR[noun]]
        assert matching_things, question
        for thing in matching_things:
            properties = {thing["color"], thing["size"], thing["place"], thing["side"]}
            assert {
                word for word in words if word in COLORS or word in ("small", "big", *GROUNDS, "sky", "water")
            } <= properties
        assert (len(matching_things) > 1) == (noun == KINDS[SINGULAR[noun]].plural)
        return matching_things

    def middle(thing):
        x0, y0, x1, y1 = thing["box"]
        return (x0 + x1) / 2, (y0 + y1) / 2

    def holds(a, b, relation):
        (ax, ay), (bx, by) = middle(a), middle(b)
        if relation in ("near", "next to"):
            distance = math.hypot(ax - bx, ay - by)
            return True if distance < 0.36 else False if distance > 0.44 else None
        gap = bx - ax if relation == "to the left of" else ax - bx
        return gap > 0 if gap > 0.14 or gap < -0.04 else None

    def parse(pattern):
        return re.fullmatch(pattern.replace("_", f"({PHRASE})"), question)

    if match := parse(r"what color (?:is|are) _\?"):
        (color,) = {thing["color"] for thing in find_things(match[1])}
        return color
    if match := re.fullmatch(rf"how many (\w+ )?({NOUN}) are (.*)\?", question):
        matching_things = [thing for thing in things if thing["kind"] == SINGULAR[match[2]]]
        assert not match[1] or match[1].strip() == matching_things[0]["color"]
        assert match[3] == "there" or match[3].split()[-1] == matching_things[0]["place"]
        return str(len(matching_things))
    if match := parse(r"where (?:is|are) _\?"):
        (place,) = {thing["place"] for thing in find_things(match[1])}
        return f"on the {place}"
    if match := parse(r"on which side (?:is|are) _\?"):
        (side,) = {"left" if middle(thing)[0] < 0.5 else "right" for thing in find_things(match[1])}
        return side
    if match := parse(r"(?:is|are) _ (bigger|smaller) than _\?"):
        a, b = (
            [(t["box"][2] - t["box"][0]) * (t["box"][3] - t["box"][1]) for t in find_things(match[i])] for i in (1, 3)
        )
        above, below = min(a) > 1.2 * max(b), min(b) > 1.2 * max(a)
        assert above != below
        return "yes" if above == (match[2] == "bigger") else "no"
    if match := parse(r"is _ (near|to the left of|to the right of) _\?"):
        (a,), (b,) = find_things(match[1]), find_things(match[3])
        return {True: "yes", False: "no", None: None}[holds(a, b, match[2])]
    if match := parse(r"is there _ near _\?"):
        candidates, *words = find_things(match[2]), *match[1].split()
        matching_things = [t for t in things if t["kind"] == words[-1] and t["color"] == words[1]]
        near = [holds(a, b, "near") for a in matching_things for b in candidates]
        return None if None in near else "yes" if any(near) else "no"
    if match := parse(r"is there _\?"):
        _, *colors, kind = match[1].split()
        matching_things = [t for t in things if t["kind"] == kind and t["color"] in (colors or [t["color"]])]
        assert len(matching_things) <= 1, "with two, people may say that there is not one"
        return "yes" if matching_things else "no"
    if match := parse(r"what is (next to|to the left of|to the right of) _\?"):
        (named_thing,) = find_things(match[2])
        candidates = [
            thing for thing in things if thing is not named_thing and holds(thing, named_thing, match[1]) is not False
        ]
        if match[1] == "next to":
            candidates = sorted(candidates, key=lambda thing: math.dist(middle(thing), middle(named_thing)))
        elif len(candidates) > 1:
            return None
        assert sum(thing["kind"] == candidates[0]["kind"] for thing in things) == 1
        return candidates[0]["kind"]
    if match := parse(r"what is _ looking at\?"):
        (named_thing,) = find_things(match[1])
        sign = 1 if named_thing["facing"] == "right" else -1
        ahead = [
            thing
            for thing in things
            if thing is not named_thing and (middle(thing)[0] - middle(named_thing)[0]) * sign > 0
        ]
        level = [
            t for t in ahead if abs(middle(t)[1] - middle(named_thing)[1]) < abs(middle(t)[0] - middle(named_thing)[0])
        ]
        return min(level, key=lambda thing: math.dist(middle(thing), middle(named_thing)))["kind"]
    (named_thing,) = find_things(parse(r"which way is _ going\?")[1])
    return named_thing["facing"]


def test_every_answer_is_the_expected_one(examples):
    for example in examples:
        answer, question = max(example.labels["answers"], key=example.labels["answers"].get), example.inputs["question"]
        assert expected_answer(question, example.facts["things"]) == answer, (example.id, question)


def test_answers_are_balanced_by_form(examples):
    """The most common answer of each form is right 38 times in 100 (10,000 questions of seed 0). Naive Bayes on words,
    trained on those and tested on 2,000 other questions, is right 37 times."""
    by_form = defaultdict(Counter)
    for example in examples:
        by_form[example.facts["question_type"]][max(example.labels["answers"], key=example.labels["answers"].get)] += 1
    highest = {"what color": 0.2, "how many": 0.45, "where": 0.45, "what is beside": 0.1, "what is it looking at": 0.15}
    for form, counts in by_form.items():
        assert counts.most_common(1)[0][1] / counts.total() < highest.get(form, 0.6), (form, counts)
    assert len(by_form) == 11 and min(counts.total() for counts in by_form.values()) > 0.015 * len(examples)
    assert 0.35 < sum(counts.most_common(1)[0][1] for counts in by_form.values()) / len(examples) < 0.46


def test_no_question_asks_where_frontal_things_look(examples):
    for example in examples:
        if re.search("looking|going", example.inputs["question"]):
            assert not re.search(r"\b(cat|rabbit|boat)\b", example.inputs["question"])
