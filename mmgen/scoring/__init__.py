"""Scores of rows: cells, intervals, differences, and the one table."""
