"""Agreement of judges: Krippendorff's alpha for ratings on an ordinal scale."""

from __future__ import annotations

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
