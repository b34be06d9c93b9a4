"""Scores for any file of predictions: references from files, intervals, two systems compared, the best of several."""

from .compare import Comparison, System, compare, metrics
from .files import Predictions, References, pair, read_predictions, read_references

__all__ = [
    "Comparison",
    "Predictions",
    "References",
    "System",
    "compare",
    "metrics",
    "pair",
    "read_predictions",
    "read_references",
]
