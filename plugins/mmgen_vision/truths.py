"""Truths of statements (label "truth", a bool), and their labels in predictions, result files and cards."""

from __future__ import annotations

from mmgen.examples import Example

LABELS = ("False", "True")  # LABELS[truth]


def truth_of(label: object) -> bool | None:
    """The truth that a label names, in upper or lower case; None for anything else."""
    return {"false": False, "true": True}.get(str(label).lower())


def right_label(example: Example) -> dict[str, float]:
    """The right label with weight 1, for `cards.label_card`; empty if the truth is unknown."""
    truth = example.labels.get("truth")
    return {} if truth is None else {LABELS[truth]: 1.0}
