"""Scores for any file of predictions: references from files, intervals, two systems compared."""

from .compare import compare, metrics
from .files import pair, read_predictions, read_references

__all__ = ["compare", "metrics", "pair", "read_predictions", "read_references"]
