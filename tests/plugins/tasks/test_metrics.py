"""The official metrics of the tasks, against procedures that are written out and the official evaluation's numbers."""

import json
import random

import pytest
from kit.beside import shared
from mmgen_tasks import BoxAccuracy, ChoiceAccuracy, PairAccuracy, PhraseRecall, VqaAccuracy
from mmgen_vl.answers import CONTRACTIONS, accuracy, agreement, normalise
from mmgen_vl.boxes import iou

from mmgen.errors import DataError
from mmgen.tensors import Example, Generation, Prediction
from mmgen.testing import MetricSuite

TEN = ("red",) * 6 + ("dark red",) * 3 + ("Maroon",)


def made(values, examples):
    """A prediction for each example."""
    return [Prediction(example.id, value, 0.5) for value, example in zip(values, examples, strict=True)]


def asked(number, answers, kind="other", question="what color is the"):
    return Example(f"q{number}", {"image": "1"}, tuple(answers), {"answer_type": kind, "question_type": question})


QUESTIONS = [
    asked(0, ("yes",) * 10, "yes/no", "is the"),
    asked(1, ("yes",) * 5 + ("no",) * 4 + ("maybe",), "yes/no", "is the"),
    asked(2, ("two",) * 7 + ("2",) + ("three",) * 2, "number", "how many"),
    asked(3, TEN),
    asked(4, TEN[::-1]),
]
STATEMENTS = [
    Example(f"dev-{set_}-{pair}-0", {"statement": "two dogs"}, facts={"group": f"{set_}-0"}, labels={"truth": truth})
    for set_, pairs in enumerate(((True, False), (True, True, False, False), (False,)))
    for pair, truth in enumerate(pairs)
]
ITEMS = [
    Example(
        f"{item}-{asks}",
        {"question": "why?"},
        facts={"asks": asks, "item": item},
        labels={"choices": ("a", "b", "c", "d"), "choice": right},
    )
    for item, rights in (("v-0", (0, 1)), ("v-1", (2, 2)), ("v-2", (3, 0)))
    for asks, right in zip(("answer", "rationale"), rights, strict=True)
]
BOXES = [(0.0, 0.0, 0.5, 0.5), (0.25, 0.25, 0.75, 1.0), (0.0, 0.0, 0.5, 0.4)]
EXPRESSIONS = [Example(f"r{n}", {"expression": "the cat"}, labels={"box": box}) for n, box in enumerate(BOXES)]
PHRASES = [
    Example(f"p{n}", {"caption": "a cat"}, facts={"type": kind}, labels={"phrases": ((0, 5, box),)})
    for n, (kind, box) in enumerate(zip(("animals", "people", "animals"), BOXES, strict=True))
]
FAR = (0.8, 0.0, 1.0, 0.1)  # meets none of the boxes


class Judges(MetricSuite):
    """Predictions of which the first is right."""

    def examples(self):
        return self.given

    def generations(self, examples):
        return made([self.value(n, example) for n, example in enumerate(examples)], examples)


class TestVqaAccuracy(Judges):
    given = QUESTIONS

    def config(self):
        return VqaAccuracy(question_types=True)

    def value(self, n, example):
        return {"label": example.targets[0] if n % 2 else "yes", "probabilities": {}}


class TestVqaAccuracyOfTexts(TestVqaAccuracy):
    def generations(self, examples):
        return MetricSuite.generations(self, examples)


class TestPairAccuracy(Judges):
    given = STATEMENTS

    def config(self):
        return PairAccuracy()

    def value(self, n, example):
        return {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}


class TestChoiceAccuracy(Judges):
    given = [
        *ITEMS,
        *(
            Example(f"v-{item}-rationale-{k}", {}, facts={"asks": "rationale", "item": f"v-{item}"})
            for item in range(3)
            for k in range(4)
        ),
    ]

    def config(self):
        return ChoiceAccuracy()

    def value(self, n, example):
        item = int(example.facts["item"][-1])  # all its rationales alike, whatever answer is given
        place = item if example.facts["asks"] == "answer" else item + 1
        return {"choice": place, "probabilities": [0.4 if k == place else 0.2 for k in range(4)]}


class TestBoxAccuracy(Judges):
    given = EXPRESSIONS

    def config(self):
        return BoxAccuracy()

    def value(self, n, example):
        return {"box": list(BOXES[0]), "index": 0}


class TestPhraseRecall(Judges):
    given = PHRASES

    def config(self):
        return PhraseRecall(types=True)

    def value(self, n, example):
        return [list(FAR)] * n + [list(BOXES[0])]


# --- VQA


def test_vqa_accuracy_is_the_official_one_in_every_case():
    cases = json.loads(shared("oracles/vqa_accuracy.json").read_text(encoding="utf-8"))
    differ = [case for case in cases if round(accuracy(case["answer"], case["answers"]), 2) != case["accuracy"]]
    assert len(cases) == 300 and not differ


@pytest.mark.parametrize(
    ("answer", "answers", "percent"),
    [
        ("red", ("red",) * 10, 100),
        ("Red", ("red",) * 10, 0),  # all people agree, so that nothing is normalised
        ("red.", ("red",) * 10, 0),
        (" red\n", ("red",) * 10, 100),
        ("Red", ("red",) * 9 + ("blue",), 100),
        ("red", ("blue",) * 9 + ("red",), 30),
        ("red", ("blue",) * 8 + ("red",) * 2, 60),
        ("red", ("blue",) * 7 + ("red",) * 3, 90),
        ("red", ("blue",) * 6 + ("red",) * 4, 100),
        ("2", ("two",) * 4 + ("three",) * 6, 100),
        ("the 2.", ("two",) * 2 + ("three",) * 8, 60),
        ("dont", ("don't",) * 3 + ("no",) * 7, 90),
        ("green", ("red",) * 5 + ("blue",) * 5, 0),
        ("2000", ("2,000",) * 3 + ("many",) * 7, 90),
    ],
)
def test_vqa_accuracy_of_cases_made_by_hand(answer, answers, percent):
    assert accuracy(answer, answers) == pytest.approx(percent)
    assert accuracy(answer, answers[::-1]) == pytest.approx(percent)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Cat", "cat"),
        ("none", "0"),
        ("ten, eleven", "10 eleven"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("2,000", "2000"),
        ("1,5/2", "152"),  # with a comma between digits no mark leaves a blank
        ("1.5", "1.5"),
        ("1.", "1"),
        ("U.K.", "uk"),
        ("." * 40, "." * 8),  # 32 points go
        ("isnt that a dogs", "isn't that dogs"),
        ("shouldntve shouldnt've", "shouldntve shouldn't've"),
        ("lets im oclock twas", "lets im o'clock 'twas"),
        ("somebody'd", "somebodyd"),
        ("\tx-ray\n", "x ray"),
        ("an", ""),
    ],
)
def test_answers_are_normalised_as_officially(text, normal):
    assert normalise(text) == normal


def test_a_contraction_is_found_by_any_one_apostrophe_that_it_lacks():
    assert (
        len(CONTRACTIONS) == 114
    )  # the official 120 less I'm, I've and I'd've twice, let's and she's, which do nothing
    assert [CONTRACTIONS[word] for word in ("y'alld've", "'ows'at", "ow's'at", "wont")] == [
        "y'all'd've",
        "'ow's'at",
        "'ow's'at",
        "won't",
    ]


def test_vqa_accuracy_and_agreement_leave_each_person_out_in_turn():
    draw = random.Random(0)
    for _ in range(200):
        people = [draw.choice(["one", "1", "two", "a dog", "dog", "Dogs"]) for _ in range(10)]
        own = draw.choice(people)
        normal = [normalise(each) for each in people] if len(set(people)) > 1 else people
        mine = normalise(own) if len(set(people)) > 1 else own
        others = [normal[:left] + normal[left + 1 :] for left in range(10)]
        by_hand = sum(min(1, sum(each == mine for each in nine) / 3) for nine in others) / 10
        assert accuracy(own, people) == pytest.approx(100 * by_hand)
        alike = sum(min(1, nine.count(normal[left]) / 3) for left, nine in enumerate(others)) / 10
        assert agreement(people) == pytest.approx(100 * alike)


def test_vqa_accuracy_by_type_of_labels_and_texts():
    labels = made([{"label": text} for text in ("yes", "no", "2", "dark red", "green")], QUESTIONS)
    found = VqaAccuracy(question_types=True).build().score(labels, QUESTIONS)
    assert {name: round(value, 6) for name, value in found.values.items()} == {
        "accuracy": 78.0,
        "yes/no": 100.0,
        "number": 100.0,
        "other": 45.0,
        "how many": 100.0,
        "is the": 100.0,
        "what color is the": 45.0,
    }
    assert [*found.values][:4] == ["accuracy", "yes/no", "number", "other"]
    assert found.per_example["number"] == [None, None, pytest.approx(100), None, None]
    texts = [Generation(one.id, one.value["label"], (), 0.0) for one in labels]
    assert VqaAccuracy().build().score(texts, QUESTIONS).values == {
        name: found.values[name] for name in ("accuracy", "yes/no", "number", "other")
    }


def test_a_question_type_that_is_called_like_an_answer_type_has_a_column_of_its_own():
    examples = [asked(0, TEN, "number", "number"), asked(1, TEN, "other", "accuracy")]
    found = VqaAccuracy(question_types=True).build().score(made([{"label": "red"}] * 2, examples), examples)
    assert [*found.values] == ["accuracy", "number", "other", "accuracy (question)", "number (question)"]


def test_what_people_and_the_most_common_answers_reach():
    found = VqaAccuracy(question_types=True).build().references(QUESTIONS)
    # six say red and each finds five more; three find two; one finds nobody
    assert found.values["other"] == pytest.approx(10 * (6 + 3 * 2 / 3))
    assert found.per_example["yes/no"][:2] == [100, pytest.approx(10 * (5 + 4))]
    assert found.values["chance_accuracy"] == pytest.approx(100)  # yes, 2 and red are said by four or more
    assert VqaAccuracy().build().references([asked(0, TEN), asked(1, ("blue",) * 10)]).values == {
        "accuracy": pytest.approx((80 + 100) / 2),
        "other": pytest.approx((80 + 100) / 2),
        "chance_accuracy": 50,  # blue, of twenty answers the most common
        "chance_other": 50,
    }


def test_questions_that_nobody_has_answered_are_not_scored():
    examples = [*QUESTIONS[:1], Example("q9", {"image": "2"})]
    found = VqaAccuracy().build().score(made([{"label": "yes"}] * 2, examples), examples)
    assert found.values == {"accuracy": 100, "yes/no": 100} and found.per_example["accuracy"] == [100, None]
    assert found.notes == ("1 of 2 examples have no answers of people, and are not scored",)
    assert VqaAccuracy().build().score(made([{"label": "yes"}], examples[1:]), examples[1:]).values == {
        "accuracy": None
    }


# --- NLVR2


def test_pairs_and_their_consistency():
    """As the official script counts: a sentence is consistent where none of its pairs is wrong."""
    says = ["True", "False", "true", "True", "False", "True", "False"]
    found = PairAccuracy().build().score(made([{"label": label} for label in says], STATEMENTS), STATEMENTS)
    right, consistent = 0, {}
    for label, example in zip(says, STATEMENTS, strict=True):
        _, set_, _, sentence = example.id.split("-")
        hit = label.lower() == str(example.labels["truth"]).lower()
        right += hit
        consistent[set_, sentence] = consistent.get((set_, sentence), True) and hit
    assert found.values["accuracy"] == pytest.approx(100 * right / 7) == pytest.approx(100 * 6 / 7)
    assert found.values["consistency"] == pytest.approx(100 * sum(consistent.values()) / 3) == pytest.approx(200 / 3)
    assert found.per_example["consistency"] == [100, None, 0, None, None, None, 100]


def test_a_coins_chance_at_pairs():
    found = PairAccuracy().build().references(STATEMENTS)
    assert found.values == {
        "chance_accuracy": 50,
        "chance_consistency": pytest.approx(100 * (1 / 4 + 1 / 16 + 1 / 2) / 3),
    }
    assert PairAccuracy().build().references([Example("x", {})]) is None


# --- VCR


def test_answers_rationales_and_both():
    chosen = [0, 1, 2, 0, 0, 0]  # both right; the answer right; the rationale right
    found = ChoiceAccuracy().build().score(made([{"choice": each} for each in chosen], ITEMS), ITEMS)
    assert found.values == {
        "Q->A": pytest.approx(200 / 3),
        "QA->R": pytest.approx(200 / 3),
        "Q->AR": pytest.approx(100 / 3),
    }
    assert found.per_example["Q->AR"] == [100, None, 0, None, 0, None]
    assert ChoiceAccuracy().build().references(ITEMS).values == {
        "chance_Q->A": 25,
        "chance_QA->R": 25,
        "chance_Q->AR": 6.25,
    }


def test_answers_alone_have_no_columns_of_rationales():
    answers = ITEMS[::2]
    metric = ChoiceAccuracy().build()
    assert [*metric.score(made([{"choice": 0}] * 3, answers), answers).values] == ["Q->A"]
    assert metric.references(answers).values == {"chance_Q->A": 25}


def test_rationales_of_answers_that_are_wrong_are_not_scored():
    given = Example("v-0-rationale-2", {}, facts={"asks": "rationale", "item": "v-0"}, labels={"choices": ("a",) * 4})
    examples = [*ITEMS[:2], given]
    found = ChoiceAccuracy().build().score(made([{"choice": 0}, {"choice": 1}, {"choice": 3}], examples), examples)
    assert found.values == {"Q->A": 100, "QA->R": 100, "Q->AR": 100}
    assert found.notes == ("1 of 3 examples have no label that says which choice is right, and are not scored",)


# --- boxes


def test_intersection_over_union_is_that_of_cells():
    """Boxes on a grid of 12 cells, counted."""
    draw = random.Random(1)

    def cells(box):
        return {(x, y) for x in range(box[0], box[2]) for y in range(box[1], box[3])}

    for _ in range(100):
        one, other = (
            [*(min(a, b) for a, b in sides), *(max(a, b) for a, b in sides)]
            for sides in ([[draw.randint(0, 12), draw.randint(0, 12)] for _ in range(2)] for _ in range(2))
        )
        union = len(cells(one) | cells(other))
        expected = len(cells(one) & cells(other)) / union if union else 0
        assert iou([value / 12 for value in one], [value / 12 for value in other])[0, 0] == pytest.approx(expected)


def test_an_overlap_of_exactly_a_half_is_right():
    whole = Example("r", {}, labels={"box": (0.1, 0.1, 0.7, 0.4)})
    for box, percent in (((0.1, 0.1, 0.4, 0.4), 100), ((0.1, 0.1, 0.399, 0.4), 0)):
        assert BoxAccuracy().build().score(made([{"box": box}], [whole]), [whole]).values == {"accuracy": percent}


def test_boxes_that_are_right_and_the_box_that_is_right_most_often():
    found = BoxAccuracy().build().score(made([{"box": BOXES[0], "index": 4}] * 3, EXPRESSIONS), EXPRESSIONS)
    assert found.per_example["accuracy"] == [100, 0, 100]
    assert BoxAccuracy().build().references(EXPRESSIONS).values == {"chance_accuracy": pytest.approx(200 / 3)}


def test_recall_of_phrases():
    ranked = [[BOXES[0]], [FAR] * 5 + [BOXES[1]], [FAR] * 12 + [BOXES[2]]]
    found = PhraseRecall(types=True).build().score(made(ranked, PHRASES), PHRASES)
    third = pytest.approx(100 / 3)
    assert found.values == {
        "animals": 50,
        "people": 0,
        "R@1": third,
        "R@5": third,
        "R@10": pytest.approx(200 / 3),
        "upper bound": 100,
    }
    assert PhraseRecall().build().score(made([[FAR], [], [FAR]], PHRASES), PHRASES).values["upper bound"] == 0
    assert PhraseRecall().build().references(PHRASES).values == {"chance_R@1": pytest.approx(200 / 3)}


@pytest.mark.parametrize(
    ("config", "value", "example", "words"),
    [
        (PairAccuracy, "True", STATEMENTS[0], "the prediction must be {\"label\": ...}, and is 'True'"),
        (ChoiceAccuracy, {"choice": "b"}, ITEMS[0], "the choice is 'b'; it is a whole number, from 0"),
        (BoxAccuracy, {"box": [0, 0, 1]}, EXPRESSIONS[0], "the prediction: a box is four numbers"),
        (PhraseRecall, {"box": [0, 0, 1, 1]}, PHRASES[0], "the prediction must be a list of boxes"),
        (PhraseRecall, [[0, 0, 1, None]], PHRASES[0], "the prediction: a box is four numbers"),
        (
            PhraseRecall,
            [],
            Example("p", {}, labels={"phrases": ((0, 1, FAR), (2, 3, FAR))}),
            "has 2 phrases; give an example to each to score them",
        ),
    ],
)
def test_predictions_of_another_kind_are_a_line(config, value, example, words):
    with pytest.raises(DataError) as caught:
        config().build().score(made([value], [example]), [example])
    assert str(caught.value).startswith(f"example '{example.id}': {words}")
