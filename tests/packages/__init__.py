"""Packages as third parties would write them, from the docs alone."""
