"""The metric of obedience: whether a question is the one that its prompt asks for, judged by the words alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from mmgen_vision.box_words import box_in_words

from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric

from .grammar import is_relevant
from .prompts import asked_about
from .questions import find_answers

KINDS = ("answer", "thing", "form", "question type")
UNKNOWN = "obedience needs examples with prompts of a kind that words can be judged by, such as those of scene_prompts"


class ObedienceMetric(Metric):
    """In percent of the questions, with one question per example:

    obedience         the question is the one that its prompt asks for
    obedience_answer  of those with a prompt "answer: ...": the only right answer to the question is this one
    obedience_thing   "thing: ...": the question is relevant, and the thing that it names first has this box
    obedience_form    "form: ...": the question is of this form, whether it has an answer or not
    obedience_type    "question type: ...": the question begins with these words
    """

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        return _score_texts([[generation.text] for generation in generations], examples)

    def references(self, examples: Sequence[Example]) -> Scores:
        """The scores of the examples' questions; as `chance_*`, those of the questions about the same picture that were
        written for other prompts, which is what a model that reads no prompt could reach."""
        scores = _score_texts([example.targets for example in examples], examples)
        by_picture: dict[str, list[Example]] = {}
        pictures = [example.id.rpartition(":")[0] for example in examples]  # the ids without the numbers of the prompts
        for picture, example in zip(pictures, examples, strict=True):
            by_picture.setdefault(picture, []).append(example)
        rest = [
            [text for neighbour in by_picture[picture] if neighbour is not example for text in neighbour.targets]
            for picture, example in zip(pictures, examples, strict=True)
        ]
        if not any(rest):
            return scores
        chance = {f"chance_{name}": value for name, value in _score_texts(rest, examples).values.items()}
        note = "chance: questions about the same picture that were written for other prompts"
        return Scores({**scores.values, **chance}, scores.per_example, (*scores.notes, note))


def obeys(question: str, kind: str, value: str, facts: Mapping[str, Any]) -> bool:
    """Whether a question is what a prompt of this kind and value asks for. `facts`: of the example."""
    if kind == "question type":
        return f"{question.lower()} ".startswith(f"{value.lower()} ")
    things = facts["things"]
    if kind == "thing":
        place = asked_about(question, things)
        alike = [thing for thing in things if place >= 0 and thing["kind"] == things[place]["kind"]]
        return is_relevant(question, things) and value in (box_in_words(thing["box"]) for thing in alike)
    verdict = find_answers(question, things)
    return verdict.answers == {value} if kind == "answer" else verdict.form == value


def _score_texts(texts: Sequence[Sequence[str]], examples: Sequence[Example]) -> Scores:
    """Scores of any number of questions per example."""
    prompts = [(example.facts.get("prompt_kind"), example.facts.get("prompt_value", "")) for example in examples]
    judged: list[float | None] = []
    for (kind, value), questions, example in zip(prompts, texts, examples, strict=True):
        known = kind == "question type" or (kind in KINDS and "things" in example.facts)
        obeyed = [obeys(text, str(kind), value, example.facts) for text in questions] if known else []
        judged.append(100 * fmean(obeyed) if obeyed else None)
    values: dict[str, float | None] = {"obedience": _mean(judged)}
    for kind in KINDS:
        if any(name == kind for name, _ in prompts):
            of_kind = [share for (name, _), share in zip(prompts, judged, strict=True) if name == kind]
            values[f"obedience_{kind.rpartition(' ')[2]}"] = _mean(of_kind)
    notes = (UNKNOWN,) if values["obedience"] is None else ()
    return Scores(values, {} if notes else {"obedience": judged}, notes)


def _mean(shares: Sequence[float | None]) -> float | None:
    known = [share for share in shares if share is not None]
    return fmean(known) if known else None
