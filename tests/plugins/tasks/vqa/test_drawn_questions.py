"""Drawn questions: every answer is the expected one, and answers are balanced by form."""

import math
import re
from collections import Counter, defaultdict

import pytest
from mmgen_scenes.world import COLORS, GROUNDS, KINDS

pytestmark = pytest.mark.slow


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
            return distance < 0.36 if distance < 0.34 or distance > 0.44 else None
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
    assert 0.35 < sum(counts.most_common(1)[0][1] for counts in by_form.values()) / len(examples) < 0.42


def test_no_question_asks_where_frontal_things_look(examples):
    for example in examples:
        if re.search("looking|going", example.inputs["question"]):
            assert not re.search(r"\b(cat|rabbit|boat)\b", example.inputs["question"])
