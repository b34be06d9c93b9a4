"""A small drawn data set, built once."""

import pytest
from mmgen_tasks import SceneAnswers


@pytest.fixture(scope="session")
def data():
    return SceneAnswers(train_size=700, val_size=20, test_size=100).build()
