"""Evaluation: a step's texts, their scores, and probes into its model."""
