"""What writers of the tasks' formats share."""

from collections.abc import Sequence


def named(splits: Sequence[str], names: dict[str, str]) -> dict[str, str]:
    """Which splits to learn from, watch and evaluate, as far as they are there."""
    roles = {"train_split": "train", "validation_split": "val", "test_split": "test"}
    return {key: names.get(split, split) for key, split in roles.items() if split in splits}
