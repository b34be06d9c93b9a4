"""The metric of questions about scenes: the shares that are relevant, discover a thing, are well formed, differ."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from statistics import fmean

from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric

from .grammar import discovers, is_relevant
from .questions import is_well_formed

JUDGES = {
    "relevance": lambda text, facts: is_relevant(text, facts["things"]),
    "discovery": lambda text, facts: discovers(text, facts["things"], facts["captions"][0]),
    "well_formed": lambda text, facts: is_well_formed(text),
}
SHIFTS = 40  # other scenes that the chance of every scene is measured on
UNKNOWN = "relevance and discovery need a data set that knows what is in its pictures, such as drawn scenes"


class DiscoveryMetric(Metric):
    """In percent, with one question per example:

    relevance    names something, and the scene has everything named, with the given colour, size, place and number
    discovery    relevant, and names a thing that the first caption does not mention
    well_formed  is a question of the scenes' language
    distinct     different questions, as a share of all generated questions
    """

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        return _score_texts([[generation.text] for generation in generations], examples)

    def references(self, examples: Sequence[Example]) -> Scores:
        """The scores of the examples' questions; and, as `chance_*`, the scores of questions about other scenes."""
        questions = [example.targets for example in examples]
        human = _score_texts(questions, examples)
        if human.values["relevance"] is None:
            return human
        shifts = range(1, min(SHIFTS, len(examples) - 1) + 1)
        others = [_score_texts([*questions[shift:], *questions[:shift]], examples).values for shift in shifts]
        chance = {
            f"chance_{name}": fmean(values[name] or 0.0 for values in others) if others else None
            for name in ("relevance", "discovery")
        }
        first = [texts[0] for texts in questions if texts]  # one per example, as for predictions
        values = {**human.values, "distinct": 100 * len({*first}) / len(first), **chance}
        return Scores(values, human.per_example, (f"chance: questions about other scenes ({len(others)} a scene)",))


def _score_texts(texts: Sequence[Sequence[str]], examples: Sequence[Example]) -> Scores:
    """Scores of any number of questions per example."""
    written = [*chain(*texts)]
    known = examples and all("things" in example.facts and "captions" in example.facts for example in examples)
    if not known or not written:
        return Scores(dict.fromkeys((*JUDGES, "distinct")), notes=("no questions to judge" if known else UNKNOWN,))
    values: dict[str, float | None] = {}
    per_example = {}
    for name, judge in JUDGES.items():
        verdicts = [
            [judge(text, example.facts) for text in questions]
            for questions, example in zip(texts, examples, strict=True)
        ]
        values[name] = 100 * fmean(chain(*verdicts))
        per_example[name] = [100 * fmean(row) if row else 0.0 for row in verdicts]
    return Scores({**values, "distinct": 100 * len({*written}) / len(written)}, per_example)
