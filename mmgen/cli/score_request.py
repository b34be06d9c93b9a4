"""The options of `mmgen score`, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class ScoreRequest:
    """What to score, and how: the options of the command by name."""

    predictions: Path
    references: Path | None = None
    per: Literal["image", "question"] = "image"
    profile: str | None = None
    split: str | None = None
    step: str | None = None
    train: Path | None = None
    names: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    against: Path | None = None
    partial: bool = False
    resamples: int = 1000
    corpus_intervals: bool = False
    randomisations: int = 0
    seed: int = 0
    out: Path | None = None


ONLY_FILES = {  # field whose option is only for files of predictions -> the option
    "per": "--references-per",
    "profile": "--profile",
    "split": "--split",
    "step": "--step",
    "train": "--train",
    "against": "--against",
    "partial": "--partial",
    "resamples": "--resamples",
    "corpus_intervals": "--corpus-intervals",
    "randomisations": "--randomisations",
    "seed": "--seed",
}
