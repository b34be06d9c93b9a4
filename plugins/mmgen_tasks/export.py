"""Shared by the tasks' writers of published formats: which split trains, validates and evaluates."""

from collections.abc import Sequence


def split_roles(splits: Sequence[str], names: dict[str, str]) -> dict[str, str]:
    """The splits to train on, validate on and evaluate, as far as they exist."""
    roles = {"train_split": "train", "validation_split": "val", "test_split": "test"}
    return {key: names.get(split, split) for key, split in roles.items() if split in splits}
