"""A small data set of drawn scenes, built once."""

import pytest
from kit.scenes import SMALL


@pytest.fixture(scope="session")
def data():
    return SMALL.build()


@pytest.fixture(scope="session")
def examples(data):
    return [example for name in data.splits() for example in data.split(name)]
