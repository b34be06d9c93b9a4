"""The metric: recall of pictures for captions and of captions for pictures, from their vectors; chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from typing import Any

import numpy as np
from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.parts import Metric
from mmgen_scenes.grammar import is_relevant

RANKS = (1, 5, 10)
DIGITS = 6  # similarities that agree to so many decimals are equal
Array = np.ndarray[Any, np.dtype[Any]]


class RecallMetric(Metric):
    """In percent:

    image R@1, R@5, R@10  captions for which one of the 1, 5 and 10 most similar pictures is right
    text R@1, R@5, R@10   pictures for which one of the 1, 5 and 10 most similar captions is right

    A caption is right for the pictures that it comes with, also in other examples. If the data know what is in the
    pictures, as drawn scenes do, it is also right for every picture with all things that it names; how things lie to
    each other is not compared. Equal similarities count as if wrong ones came first."""

    def __init__(self, image: str, caption: str) -> None:
        self.image, self.caption = image, caption

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        if not examples:
            return Scores({f"{side} R@{most}": None for side in ("image", "text") for most in RANKS})
        sides = self._candidates(examples)
        images, captions = (_vectors(name, generations) for name in (self.image, self.caption))
        if images.shape != captions.shape:
            raise DataError(f"'{self.image}' and '{self.caption}' have vectors of different lengths")
        columns: dict[str, list[float]] = {}
        for side, queries, compared in (("image", captions, images), ("text", images, captions)):
            candidates, right = sides[side]
            ranks = _ranks_of_right(queries @ compared[candidates].T, right)
            columns |= {f"{side} R@{most}": [100.0 * bool(rank < most) for rank in ranks] for most in RANKS}
        pictures, right = sides["image"]
        note = f"recall: a caption is right for {right.sum(1).mean():.1f} of {len(pictures)} pictures on average"
        return Scores({name: float(np.mean(column)) for name, column in columns.items()}, columns, (note,))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        """Chance: the expectation for a random order."""
        if not examples:
            return None
        chances = {
            f"chance_{side} R@{most}": [_chance(int(count), len(candidates), most) for count in right.sum(1)]
            for side, (candidates, right) in self._candidates(examples).items()
            for most in RANKS
        }
        values = {name: 100.0 * float(np.mean(column)) for name, column in chances.items()}
        return Scores(values, notes=("chance: pictures and captions in random order",))

    def _candidates(self, examples: Sequence[Example]) -> Mapping[str, tuple[Array, Array]]:
        """Side -> the first of the N examples with each of the C different candidates, and (N, C) whether a candidate
        is right for the caption ("image") or the picture ("text") of an example."""
        shown, written = (
            [_first_alternative(example.inputs.get(field, example.id)) for example in examples]
            for field in (self.image, self.caption)
        )
        _, pictures, picture_of = np.unique(shown, return_index=True, return_inverse=True)
        texts, captions, caption_of = np.unique(written, return_index=True, return_inverse=True)
        true = np.zeros((len(captions), len(pictures)), bool)
        true[caption_of, picture_of] = True
        for column, place in enumerate(pictures):
            things = examples[place].facts.get("things")
            if things is not None:
                true[:, column] |= [is_relevant(str(text), things) for text in texts]
        return {"image": (pictures, true[caption_of]), "text": (captions, true.T[picture_of])}


def _vectors(name: str, predictions: Sequence[Prediction]) -> Array:
    """(N, W) the vectors of one input. Raises DataError."""
    try:
        vectors = np.array([prediction.value[name] for prediction in predictions], float)
    except (LookupError, TypeError, ValueError):
        vectors = np.zeros(0)
    if vectors.ndim != 2:
        raise DataError(f'every prediction must be {{"{name}": [numbers]}}, with as many numbers as all others')
    return vectors


def _first_alternative(value: Any) -> str:
    """The first of an input's alternatives, which evaluation reads; as text."""
    return str(value[0] if isinstance(value, tuple) and value else value)


def _ranks_of_right(similarities: Array, right: Array) -> Array:
    """(N, C) both -> (N,) how many wrong candidates are at least as similar as the best right one."""
    rounded = similarities.round(DIGITS)
    best = np.where(right, rounded, -np.inf).max(1, keepdims=True)
    return np.asarray(((rounded >= best) & ~right).sum(1))


def _chance(right: int, count: int, most: int) -> float:
    """The probability that one of the first `most` of `count` candidates in random order is one of the right ones."""
    most = min(most, count)
    return 1 - comb(count - right, most) / comb(count, most)
