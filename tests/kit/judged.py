"""Examples and predictions for the tasks' official metrics, and the suite of these metrics."""

from mmgen.examples import Example, Prediction
from mmgen.testing import MetricSuite

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
