"""Runs of recipes: training, writing, scoring; and scoring, writing and probing of finished runs."""
