"""How far judges agree: Krippendorff's alpha for ratings on an ordinal scale."""

from __future__ import annotations

import numpy as np


def alpha(ratings: np.ndarray) -> float | None:
    """Ordinal alpha of (J, Q) ratings, NaN where there is none: 1 is perfect agreement, 0 what chance would give.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), steps A to E with the ordinal difference. None
    where no question has two ratings, or all ratings are one value, so that there is nothing to agree about.
    """
    values = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == values).sum(0).astype(np.float64)  # (Q, values)
    counts = counts[counts.sum(1) > 1]  # a lone rating agrees with nobody
    weighed = counts / (counts.sum(1, keepdims=True) - 1)
    pairs = counts.T @ weighed - np.diag(weighed.sum(0))  # coincidences; no rating is paired with itself
    totals = pairs.sum(1)
    between = np.cumsum(totals) - totals / 2  # up to the middle of each value's ranks
    distance = (between[:, None] - between[None, :]) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / max(totals.sum() - 1, 1)
    return None if not expected else float(1 - (pairs * distance).sum() / expected)
