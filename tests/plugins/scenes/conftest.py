"""A small data set of drawn scenes, built once."""

import pytest
from mmgen_scenes import Scenes


@pytest.fixture(scope="session")
def data():
    return Scenes(train_size=300, val_size=40, test_size=120).build()


@pytest.fixture(scope="session")
def examples(data):
    return [example for name in data.splits() for example in data.split(name)]
