"""A small drawn data set, built once."""

import pytest
from mmgen_tasks import ScenePairs


@pytest.fixture(scope="session")
def data():
    return ScenePairs(train_size=120, val_size=1, test_size=10).build()
