"""Inference: queries to a trained run."""
