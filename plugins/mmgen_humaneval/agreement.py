"""Agreement of judges: Krippendorff's alpha for ratings on an ordinal scale, of all judges or of pairs."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product
from statistics import fmean

import numpy as np


def alpha(ratings: np.ndarray) -> float | None:
    """Ordinal alpha of (J, Q) ratings, where NaN is a missing rating: 1 is perfect agreement, 0 is chance.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), steps A to E with the ordinal difference. Returns
    None if no question has two ratings, or if all ratings have the same value: alpha is undefined then.
    """
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == values).sum(0).astype(np.float64)  # (Q, values)
    counts = counts[counts.sum(1) > 1]  # a single rating cannot agree
    weighed = counts / (counts.sum(1, keepdims=True) - 1)
    pairs = counts.T @ weighed - np.diag(weighed.sum(0))  # coincidences, without pairs of a rating with itself
    totals = pairs.sum(1)
    between = np.cumsum(totals) - totals / 2  # up to the middle of each value's ranks
    distance = (between[:, None] - between[None, :]) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / max(totals.sum() - 1, 1)
    return None if not expected else float(1 - (pairs * distance).sum() / expected)


def pairs_of_judges(people: list[int], programs: Mapping[str, int]) -> dict[str, list[tuple[int, int]]]:
    """The pairs of people, and of each program with people; none without programs or without people."""
    if not people or not programs:
        return {}
    return {
        "people": [*combinations(people, 2)],
        **{judge: [*product(people, [place])] for judge, place in programs.items()},
    }


def mean_alpha(ratings: np.ndarray, pairs: list[tuple[int, int]]) -> float | None:
    """The mean over pairs of judges for which alpha is defined."""
    known = [value for pair in pairs if (value := alpha(ratings[list(pair)])) is not None]
    return fmean(known) if known else None
