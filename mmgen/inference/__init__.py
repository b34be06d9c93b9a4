"""Inference: a finished run is asked about what it has never seen."""
