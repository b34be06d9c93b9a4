"""A small drawn data set, built once."""

import pytest
from mmgen_tasks import SceneExpressions


@pytest.fixture(scope="session")
def expressions():
    return SceneExpressions(train_size=400, val_size=1, test_size=1).build()
