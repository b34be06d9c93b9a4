"""Relevance and discovery: what questions about drawn scenes are worth, by their words and the scene's facts."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from mmgen.parts import Metric
from mmgen.tensors import Example, Generation, Scores

from .grammar import discovers, relevant, well_formed

NAMES = ("relevance", "discovery", "well_formed", "distinct")
SHIFTS = 40  # other scenes that every scene's chance is measured on
UNKNOWN = "relevance and discovery need a data set that knows what is in its pictures, such as drawn scenes"


class DiscoveryMetric(Metric):
    """In percent, one question an example:

    relevance    names something, and everything named is in the scene with the colour, size, place and number given
    discovery    relevant, and names a thing that the first caption does not mention
    well_formed  is a question that the scenes' language can ask
    distinct     different questions, of all that were written
    """

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        return _scores([[generation.text] for generation in generations], examples)

    def references(self, examples: Sequence[Example]) -> Scores:
        """What the examples' own questions reach; and, as `chance_*`, what questions about other scenes do."""
        human = _scores([example.targets for example in examples], examples)
        if human.values["relevance"] is None:
            return human
        reached = []
        for shift in range(1, min(SHIFTS, len(examples) - 1) + 1):
            moved = [*examples[shift:], *examples[:shift]]
            reached.append(_scores([example.targets for example in moved], examples).values)
        chance = {
            f"chance_{name}": fmean(values[name] or 0.0 for values in reached) if reached else None
            for name in ("relevance", "discovery")
        }
        note = f"chance: questions about other scenes ({len(reached)} a scene)"
        first = [example.targets[0] for example in examples if example.targets]  # one an example, like what is scored
        distinct = 100 * len(set(first)) / len(first)
        return Scores({**human.values, "distinct": distinct, **chance}, human.per_example, (note,))


def _scores(texts: Sequence[Sequence[str]], examples: Sequence[Example]) -> Scores:
    """Scores of any number of questions an example."""
    if not examples or not all("things" in example.facts and "captions" in example.facts for example in examples):
        return Scores(dict.fromkeys(NAMES), notes=(UNKNOWN,))
    judged = [
        [(relevant(text, things), discovers(text, things, caption), well_formed(text)) for text in questions]
        for questions, things, caption in (
            (questions, example.facts["things"], example.facts["captions"][0])
            for questions, example in zip(texts, examples, strict=True)
        )
    ]
    per_example = {
        name: [100 * fmean(each[i] for each in judgements) if judgements else 0.0 for judgements in judged]
        for i, name in enumerate(NAMES[:3])
    }
    everything = [each for judgements in judged for each in judgements]
    if not everything:
        return Scores(dict.fromkeys(NAMES), notes=("there are no questions to judge",))
    written = [text for questions in texts for text in questions]
    values = {name: 100 * fmean(each[i] for each in everything) for i, name in enumerate(NAMES[:3])}
    return Scores({**values, "distinct": 100 * len(set(written)) / len(written)}, per_example)
