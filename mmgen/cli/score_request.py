"""The options of `mmgen score`, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class ScoreRequest:
    """What to score, and how: the options of the command by name."""

    predictions: Path
    references: Path | None
    per: Literal["image", "question"]
    profile: str | None
    split: str | None
    step: str | None
    train: Path | None
    names: tuple[str, ...]
    sets: tuple[str, ...]
    against: Path | None
    partial: bool
    resamples: int
    corpus_intervals: bool
    randomisations: int
    seed: int
    out: Path | None
