"""Shared by tests: small models and recipes, files in published formats, processes that start quickly."""
