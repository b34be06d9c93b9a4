"""What the score command is asked: its options as one thing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class ScoreRequest:
    """What is scored, and how: the command's options under their names."""

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


ONLY_FILES = {  # option that means nothing for a run folder -> how it is written
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
