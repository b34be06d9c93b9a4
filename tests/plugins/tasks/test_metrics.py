"""The tasks' metrics: as their official programs count, columns by facts, chance, and predictions that cannot be
scored."""

from dataclasses import replace

import pytest
from mmgen_tasks import BoxAccuracy, ChoiceAccuracy, PairAccuracy, PhraseRecall, VqaAccuracy

from mmgen.errors import DataError
from mmgen.examples import Example, Generation, Prediction
from mmgen.testing import MetricSuite

# --- examples, and the suite of their metrics -------------------------------------------------------------------------


TEN = ("red",) * 6 + ("dark red",) * 3 + ("Maroon",)


def predictions_of(values, examples):
    """A prediction for each example."""
    return [Prediction(example.id, value, 0.5) for value, example in zip(values, examples, strict=True)]


def question_example(number, answers, kind="other", question="what color is the"):
    return Example(f"q{number}", {"image": "1"}, tuple(answers), {"answer_type": kind, "question_type": question})


QUESTIONS = [
    question_example(0, ("yes",) * 10, "yes/no", "is the"),
    question_example(1, ("yes",) * 5 + ("no",) * 4 + ("maybe",), "yes/no", "is the"),
    question_example(2, ("two",) * 7 + ("2",) + ("three",) * 2, "number", "how many"),
    question_example(3, TEN),
    question_example(4, TEN[::-1]),
]


STATEMENTS = [
    Example(f"dev-{set_}-{pair}-0", {"statement": "two dogs"}, facts={"group": f"{set_}-0"}, labels={"truth": truth})
    for set_, pairs in enumerate(((True, False), (True, True, False, False), (False,)))
    for pair, truth in enumerate(pairs)
]


ITEMS = [
    Example(
        f"{item}-{question_kind}",
        {"question": "why?"},
        facts={"asks": question_kind, "item": item},
        labels={"choices": ("a", "b", "c", "d"), "choice": right},
    )
    for item, rights in (("v-0", (0, 1)), ("v-1", (2, 2)), ("v-2", (3, 0)))
    for question_kind, right in zip(("answer", "rationale"), rights, strict=True)
]


BOXES = [(0.0, 0.0, 0.5, 0.5), (0.25, 0.25, 0.75, 1.0), (0.0, 0.0, 0.5, 0.4)]


EXPRESSIONS = [Example(f"r{n}", {"expression": "the cat"}, labels={"box": box}) for n, box in enumerate(BOXES)]


PHRASES = [
    Example(f"p{n}", {"caption": "a cat"}, facts={"type": kind}, labels={"phrases": ((0, 5, box),)})
    for n, (kind, box) in enumerate(zip(("animals", "people", "animals"), BOXES, strict=True))
]


FAR = (0.8, 0.0, 1.0, 0.1)  # meets none of the boxes


class Judges(MetricSuite):
    """Predictions; the first is correct."""

    def examples(self):
        return self.scored_examples

    def generations(self, examples):
        return predictions_of([self.value(n, example) for n, example in enumerate(examples)], examples)


# --- tests ------------------------------------------------------------------------------------------------------------


def score(config, values, examples):
    return config.build().score(predictions_of(values, examples), examples)


def chance(config, examples):
    return config.build().references(examples).values


class TestVqaAccuracy(Judges):
    scored_examples = QUESTIONS

    def config(self):
        return VqaAccuracy(by=("question_type",))

    def value(self, n, example):
        return {"label": example.targets[0] if n % 2 else "yes", "probabilities": {}}


class TestPairAccuracy(Judges):
    scored_examples = STATEMENTS

    def config(self):
        return PairAccuracy()

    def value(self, n, example):
        return {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}


class TestBoxAccuracy(Judges):
    scored_examples = EXPRESSIONS

    def config(self):
        return BoxAccuracy()

    def value(self, n, example):
        return {"box": list(BOXES[0]), "index": 0}


class TestPhraseRecall(Judges):
    scored_examples = PHRASES

    def config(self):
        return PhraseRecall(by=("type",))

    def value(self, n, example):
        return [list(FAR)] * n + [list(BOXES[0])]


class TestChoiceAccuracy(Judges):
    scored_examples = ITEMS

    def config(self):
        return ChoiceAccuracy()

    def value(self, n, example):
        return {"choice": n % 4, "probabilities": [0.25] * 4}


def test_vqa_accuracy_by_type_of_labels_and_texts():
    answers = ("yes", "no", "2", "dark red", "green")
    scores = score(VqaAccuracy(by=("question_type",)), [{"label": text} for text in answers], QUESTIONS)
    assert {name: round(value, 6) for name, value in scores.values.items()} == {
        "accuracy": 78.0,
        "yes/no": 100.0,
        "number": 100.0,
        "other": 45.0,
        "how many": 100.0,
        "is the": 100.0,
        "what color is the": 45.0,
    }
    assert scores.per_example["number"] == [None, None, pytest.approx(100), None, None]
    texts = [Generation(example.id, text, (), 0.0) for example, text in zip(QUESTIONS, answers, strict=True)]
    by_texts = VqaAccuracy().build().score(texts, QUESTIONS).values
    assert by_texts == {name: scores.values[name] for name in ("accuracy", "yes/no", "number", "other")}


def test_accuracy_of_people_and_of_the_most_common_answers():
    scores = VqaAccuracy(by=("question_type",)).build().references(QUESTIONS)
    # six say red and five others agree with each; three have two others; one has none
    assert scores.values["other"] == pytest.approx(10 * (6 + 3 * 2 / 3))
    assert scores.per_example["yes/no"][:2] == [100, pytest.approx(10 * (5 + 4))]
    # without articles and in digits, eight say 2 and two say 3
    assert scores.values["number"] == pytest.approx(10 * (8 + 2 * 1 / 3))
    assert scores.values["chance_accuracy"] == pytest.approx(100)  # four or more people say yes, 2 and red
    assert chance(VqaAccuracy(), [question_example(0, TEN), question_example(1, ("blue",) * 10)]) == {
        "accuracy": pytest.approx((80 + 100) / 2),
        "other": pytest.approx((80 + 100) / 2),
        "chance_accuracy": 50,  # blue, the most common of twenty answers
        "chance_other": 50,
    }


def test_questions_without_answers_are_not_scored():
    examples = [*QUESTIONS[:1], Example("q9", {"image": "2"})]
    scores = score(VqaAccuracy(), [{"label": "yes"}] * 2, examples)
    assert scores.values == {"accuracy": 100, "yes/no": 100} and scores.per_example["accuracy"] == [100, None]
    assert scores.notes == ("1 of 2 examples have no answers of people, and are not scored",)


def test_pairs_and_their_consistency():
    """As the official script counts: a sentence is consistent where none of its pairs is wrong. Here the third of four
    pairs of the second sentence is."""
    predicted = ["True", "False", "true", "True", "False", "True", "False"]
    scores = score(PairAccuracy(), [{"label": label} for label in predicted], STATEMENTS)
    assert scores.values == {"accuracy": pytest.approx(600 / 7), "consistency": pytest.approx(200 / 3)}
    assert scores.per_example["consistency"] == [100, None, 0, None, None, None, 100]


def test_statements_without_groups_have_no_consistency():
    """Such as those of a table: it would repeat the accuracy."""
    examples = [Example(str(n), {}, labels={"truth": True}) for n in range(2)]
    assert score(PairAccuracy(), [{"label": "True"}, {"label": "False"}], examples).values == {"accuracy": 50}
    assert chance(PairAccuracy(), examples) == {"chance_accuracy": 50}
    assert PairAccuracy().build().references([Example("x", {})]) is None


def test_answers_rationales_and_both():
    choices = [0, 1, 2, 0, 0, 0]  # both right; only the answer right; only the rationale right
    scores = score(ChoiceAccuracy(), [{"choice": choice} for choice in choices], ITEMS)
    third = pytest.approx(100 / 3)
    assert scores.values == {"Q->A": pytest.approx(200 / 3), "QA->R": pytest.approx(200 / 3), "Q->AR": third}
    assert scores.per_example["Q->AR"] == [100, None, 0, None, 0, None]
    unlabelled = [replace(example, id=f"{example.id}-0", labels={}) for example in ITEMS]  # as for other answers
    rescored = score(ChoiceAccuracy(), [{"choice": choice} for choice in choices * 2], [*ITEMS, *unlabelled])
    assert rescored.values == scores.values
    answers = ITEMS[::2]
    assert [*score(ChoiceAccuracy(), [{"choice": 0}] * 3, answers).values] == ["Q->A"]
    assert chance(ChoiceAccuracy(), answers) == {"chance_Q->A": 25}


def test_choices_of_other_data_have_an_accuracy():
    """Such as those of a table, without `facts["asks"]`; chance follows the number of their choices."""
    examples = [
        Example(f"train-{n}", {}, labels={"choices": tuple("abcde"[:count]), "choice": 1})
        for n, count in enumerate((2, 5))
    ]
    scores = score(ChoiceAccuracy(), [{"choice": 1}, {"choice": 0}], examples)
    assert scores.values == {"accuracy": 50} and scores.per_example["accuracy"] == [100, 0]
    assert chance(ChoiceAccuracy(), examples) == {"chance_accuracy": 35}
    scores = score(ChoiceAccuracy(), [{"choice": 0}, {"choice": 1}, {"choice": 0}], [*ITEMS[:1], *examples])
    assert scores.values == {"Q->A": 100, "accuracy": 50}


def test_recall_of_phrases():
    ranked = [[BOXES[0]], [FAR] * 5 + [BOXES[1]], [FAR] * 12 + [BOXES[2]]]
    third = pytest.approx(100 / 3)
    assert score(PhraseRecall(by=("type",)), ranked, PHRASES).values == {
        "animals": 50,
        "people": 0,
        "R@1": third,
        "R@5": third,
        "R@10": pytest.approx(200 / 3),
        "upper bound": 100,
    }
    assert score(PhraseRecall(), [[FAR], [], [FAR]], PHRASES).values["upper bound"] == 0


@pytest.mark.parametrize(
    ("config", "examples", "expected"),
    [
        (PairAccuracy, STATEMENTS, {"accuracy": 50, "consistency": pytest.approx(100 * (1 / 4 + 1 / 16 + 1 / 2) / 3)}),
        (BoxAccuracy, EXPRESSIONS, {"accuracy": pytest.approx(200 / 3)}),  # the box that is right most often
        (ChoiceAccuracy, ITEMS, {"Q->A": 25, "QA->R": 25, "Q->AR": 6.25}),
        (PhraseRecall, PHRASES, {"R@1": pytest.approx(200 / 3)}),
    ],
)
def test_chance(config, examples, expected):
    assert chance(config(), examples) == {f"chance_{name}": value for name, value in expected.items()}


@pytest.mark.parametrize(
    ("config", "examples", "values", "expected"),
    [
        (PairAccuracy, STATEMENTS, [{"label": "True"}] * 7, {"f0": pytest.approx(200 / 3), "f1": 0, "f2": 50}),
        (ChoiceAccuracy, ITEMS, [{"choice": n} for n in (0, 1, 2, 0, 0, 0)],
         {"Q->A f0": 100, "Q->A f1": 0, "Q->A f2": 100, "QA->R f0": 0, "QA->R f1": 100, "QA->R f2": 100}),
    ],
)  # fmt: skip
def test_columns_by_a_fact(config, examples, values, expected):
    examples = [replace(e, facts={**e.facts, "form": f"f{n % 3}"}) for n, e in enumerate(examples)]
    columns = score(config(by=["form"]), values, examples).values
    assert {name: value for name, value in columns.items() if "f" in name} == expected
    assert [*score(config(), values, examples).values] == [name for name in columns if name not in expected]


@pytest.mark.parametrize(
    ("config", "value", "example", "words"),
    [
        (PairAccuracy, "True", STATEMENTS[0], "the prediction must be {\"label\": ...}, not 'True'"),
        (ChoiceAccuracy, {"choice": "b"}, ITEMS[0], "the choice must be a non-negative integer, not 'b'"),
        (BoxAccuracy, {"box": [0, 0, 1]}, EXPRESSIONS[0], "the prediction: a box must be four numbers"),
        (PhraseRecall, {"box": [0, 0, 1, 1]}, PHRASES[0], "the prediction must be a list of boxes"),
    ],
)
def test_predictions_of_another_kind_give_one_line(config, value, example, words):
    with pytest.raises(DataError) as caught:
        score(config(), [value], [example])
    assert str(caught.value).startswith(f"example '{example.id}': {words}")
