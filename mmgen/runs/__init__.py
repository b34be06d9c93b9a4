"""Runs: recipe in, results out; a finished run, loaded, asked and probed."""
