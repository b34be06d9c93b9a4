"""The served model, built once for a file."""

import pytest
from kit import served


@pytest.fixture(scope="module")
def predictor(tmp_path_factory):
    return served.predictor(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="module")
def client(predictor):
    with served.client(predictor) as opened:
        yield opened
