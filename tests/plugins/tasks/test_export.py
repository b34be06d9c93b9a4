"""What the writers of the tasks' formats share."""

from mmgen_tasks.export import split_roles


def test_splits_that_exist_have_a_role():
    assert split_roles(["train", "test"], {"test": "test1"}) == {"train_split": "train", "test_split": "test1"}
