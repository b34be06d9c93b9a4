"""A small drawn data set, built once."""

import pytest
from mmgen_tasks import SceneChoices


@pytest.fixture(scope="session")
def data():
    return SceneChoices(train_size=150, val_size=1, test_size=5).build()
