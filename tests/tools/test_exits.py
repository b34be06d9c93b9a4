"""The script that starts several processes: they end as expected, however they end."""

import signal

import pytest

from tools import exits


@pytest.mark.parametrize(
    ("way", "statuses"),
    [("end", [0, 0]), ("one error", [exits.LEFT] * 2), ("one kill", [exits.LEFT, -signal.SIGKILL])],
)
def test_the_statuses_that_are_expected(way, statuses):
    assert [exits.expected(way, rank, 2) for rank in range(2)] == statuses
