"""The metric of questions about scenes: the shares that are relevant, discover a thing, are well formed, differ."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric

from .grammar import discovers, is_relevant, is_well_formed

NAMES = ("relevance", "discovery", "well_formed", "distinct")
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
        human = _score_texts([example.targets for example in examples], examples)
        if human.values["relevance"] is None:
            return human
        values_of_shifts = []
        for shift in range(1, min(SHIFTS, len(examples) - 1) + 1):
            shifted = [*examples[shift:], *examples[:shift]]
            values_of_shifts.append(_score_texts([example.targets for example in shifted], examples).values)
        chance = {
            f"chance_{name}": fmean(values[name] or 0.0 for values in values_of_shifts) if values_of_shifts else None
            for name in ("relevance", "discovery")
        }
        note = f"chance: questions about other scenes ({len(values_of_shifts)} a scene)"
        first = [example.targets[0] for example in examples if example.targets]  # one per example, as for predictions
        distinct = 100 * len(set(first)) / len(first)
        return Scores({**human.values, "distinct": distinct, **chance}, human.per_example, (note,))


def _score_texts(texts: Sequence[Sequence[str]], examples: Sequence[Example]) -> Scores:
    """Scores of any number of questions per example."""
    if not examples or not all("things" in example.facts and "captions" in example.facts for example in examples):
        return Scores(dict.fromkeys(NAMES), notes=(UNKNOWN,))
    judgements_of_examples = [
        [(is_relevant(text, things), discovers(text, things, caption), is_well_formed(text)) for text in questions]
        for questions, things, caption in (
            (questions, example.facts["things"], example.facts["captions"][0])
            for questions, example in zip(texts, examples, strict=True)
        )
    ]
    per_example = {
        name: [
            100 * fmean(judgement[i] for judgement in judgements) if judgements else 0.0
            for judgements in judgements_of_examples
        ]
        for i, name in enumerate(NAMES[:3])
    }
    everything = [judgement for judgements in judgements_of_examples for judgement in judgements]
    if not everything:
        return Scores(dict.fromkeys(NAMES), notes=("no questions to judge",))
    written = [text for questions in texts for text in questions]
    values = {name: 100 * fmean(judgement[i] for judgement in everything) for i, name in enumerate(NAMES[:3])}
    return Scores({**values, "distinct": 100 * len(set(written)) / len(written)}, per_example)
