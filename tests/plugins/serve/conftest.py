"""The served model, built once for a file."""

import pytest
from kit import served


@pytest.fixture(scope="module")
def predictor():
    return served.predictor()


@pytest.fixture(scope="module")
def client(predictor):
    with served.client(predictor) as opened:
        yield opened
