"""Scores for any file of predictions: references from files, confidence intervals, comparison of two systems, and the
best of several texts."""

from .compare import Comparison, System, Uncertainty, compare, metrics
from .files import Predictions, References, pair, read_predictions, read_references

__all__ = [
    "Comparison",
    "Predictions",
    "References",
    "System",
    "Uncertainty",
    "compare",
    "metrics",
    "pair",
    "read_predictions",
    "read_references",
]
