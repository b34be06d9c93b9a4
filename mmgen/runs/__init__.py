"""Runs: recipe in, results out; a finished run, scored, written and probed again."""
