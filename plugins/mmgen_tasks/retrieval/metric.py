"""The metric of retrieval: recall of pictures for captions and of captions for pictures, from their vectors; chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import Any

import numpy as np
from mmgen_scenes.grammar import is_relevant

from mmgen.errors import DataError
from mmgen.parts import Metric
from mmgen.tensors import Example, Prediction, Scores

from ..score_columns import means, prediction_value

RANKS = (1, 5, 10)
DIGITS = 6  # similarities that agree to so many decimals are equal


@dataclass(frozen=True)
class Candidates:
    """The different pictures and captions of examples.

    captions, pictures  the positions of the first examples with each: C and P of them
    caption_of          for every example, the place of its caption in `captions`; `picture_of` likewise
    true                (C, P) whether a caption is true of a picture
    """

    captions: list[int]
    pictures: list[int]
    caption_of: list[int]
    picture_of: list[int]
    true: np.ndarray[Any, np.dtype[np.bool_]]


class RetrievalMetric(Metric):
    """In percent:

    image R@1, R@5, R@10  captions for which one of the 1, 5 and 10 most similar pictures is right
    text R@1, R@5, R@10   pictures for which one of the 1, 5 and 10 most similar captions is right

    A caption is right for the pictures that it comes with, also in other examples. If the data know what is in the
    pictures, as drawn scenes do, it is also right for every picture with all things that it names, as in `discovery`;
    how things lie to each other is not compared. Equal similarities count as if wrong ones came first."""

    def __init__(self, image: str, caption: str) -> None:
        self.image, self.caption = image, caption

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        if not examples:
            return Scores({name: None for side in ("image", "text") for name in _score_names(side)})
        candidates = self._find_candidates(examples)
        width = len(_vector_of(generations[0], self.image, examples[0]))
        images = self._vectors_of_input(self.image, generations, examples, width)
        captions = self._vectors_of_input(self.caption, generations, examples, width)
        image_ranks = _ranks_of_right(captions @ images[candidates.pictures].T, candidates.true[candidates.caption_of])
        text_ranks = _ranks_of_right(images @ captions[candidates.captions].T, candidates.true.T[candidates.picture_of])
        columns = {
            name: [100.0 * (rank < most) for rank in ranks]
            for side, ranks in (("image", image_ranks), ("text", text_ranks))
            for name, most in zip(_score_names(side), RANKS, strict=True)
        }
        count = fmean(candidates.true.sum(1)[candidates.caption_of].tolist())
        note = f"retrieval: a caption is right for {count:.1f} of {len(candidates.pictures)} pictures on average"
        return Scores(means(columns), columns, (note,))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        """Chance: the expectation for a random order."""
        if not examples:
            return None
        candidates = self._find_candidates(examples)
        sides = (
            ("image", candidates.true.sum(1)[candidates.caption_of]),
            ("text", candidates.true.sum(0)[candidates.picture_of]),
        )
        sizes = {"image": len(candidates.pictures), "text": len(candidates.captions)}
        columns = {
            name: [100.0 * _chance_of_recall(int(right), sizes[side], most) for right in counts]
            for side, counts in sides
            for name, most in zip(_score_names(side), RANKS, strict=True)
        }
        return Scores(means(columns, "chance_"), notes=("chance: pictures and captions in random order",))

    def _find_candidates(self, examples: Sequence[Example]) -> Candidates:
        texts, pictures = (
            [_first_alternative(example.inputs.get(field, example.id)) for example in examples]
            for field in (self.caption, self.image)
        )
        caption_places, picture_places = _number_values(texts), _number_values(pictures)
        caption_of, picture_of = [caption_places[text] for text in texts], [picture_places[key] for key in pictures]
        first_caption, first_picture = _first_places(caption_of), _first_places(picture_of)
        true = np.zeros((len(first_caption), len(first_picture)), bool)
        true[caption_of, picture_of] = True
        for column, place in enumerate(first_picture):
            facts = examples[place].facts
            if "things" in facts and "captions" in facts:
                true[:, column] |= [is_relevant(text, facts["things"]) for text in caption_places]
        return Candidates(first_caption, first_picture, caption_of, picture_of, true)

    def _vectors_of_input(
        self, name: str, predictions: Sequence[Prediction], examples: Sequence[Example], width: int
    ) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(N, W) of one input. Raises DataError."""
        rows = []
        for prediction, example in zip(predictions, examples, strict=True):
            rows.append(_vector_of(prediction, name, example))
            if len(rows[-1]) != width:
                raise DataError(
                    f"example '{example.id}': the vector of '{name}' has {len(rows[-1])} numbers, but that of "
                    f"'{self.image}' in the first example has {width}; compare vectors of one model"
                )
        return np.array(rows, float)


def _vector_of(prediction: Prediction, name: str, example: Example) -> list[float]:
    vector = prediction_value(prediction.value, name, example)
    if not isinstance(vector, list) or not all(isinstance(number, int | float) for number in vector):
        raise DataError(f"example '{example.id}': the vector of '{name}' must be a list of numbers, not {vector!r:.60}")
    return vector


def _score_names(side: str) -> list[str]:
    return [f"{side} R@{most}" for most in RANKS]


def _first_alternative(value: Any) -> str:
    """The first of an input's alternatives, which evaluation reads; as text."""
    return str(value[0] if isinstance(value, tuple) and value else value)


def _number_values(values: Sequence[str]) -> dict[str, int]:
    """The different values, numbered in their order."""
    return {value: place for place, value in enumerate(dict.fromkeys(values))}


def _first_places(numbers: Sequence[int]) -> list[int]:
    """For 0, 1, ..., the position at which each first occurs."""
    first: dict[int, int] = {}
    for position, number in enumerate(numbers):
        first.setdefault(number, position)
    return [first[number] for number in range(len(first))]


def _ranks_of_right(
    similarities: np.ndarray[Any, np.dtype[np.float64]], right: np.ndarray[Any, np.dtype[np.bool_]]
) -> list[int]:
    """(Q, N) both -> how many wrong candidates of each query are at least as similar as its best right one."""
    rounded = similarities.round(DIGITS)
    best = np.where(right, rounded, -np.inf).max(1, keepdims=True)
    return [int(count) for count in ((rounded >= best) & ~right).sum(1)]


def _chance_of_recall(right: int, count: int, most: int) -> float:
    """The probability that one of the first `most` of `count` candidates in random order is one of the right ones."""
    most = min(most, count)
    return 1 - comb(count - right, most) / comb(count, most)
