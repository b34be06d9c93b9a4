"""The load generator, against a service in this process."""

import json
import os

import pytest
from kit import served, servers

from tools.load import row, send, serving


def test_a_row_for_so_many_clients(tmp_path):
    body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
    with servers.running(served.predictor(tmp_path)) as address:
        clients, rate, median, high, processor, memory, statuses = row(address, os.getpid(), body, 2, 4).split("|")[
            1:-1
        ]
        assert [status for status, _ in send(address, b"{", 2)] == [400, 400]
    assert (clients.strip(), statuses.strip()) == ("2", "200: 4")
    assert float(rate) > 0 and 0 < float(median) <= float(high) and float(processor) > 0 and float(memory) > 10


@pytest.mark.slow
def test_a_service_that_does_not_start_is_named():
    message = "^error: mmgen serve nowhere --batch 0 does not start; run it to see the reason$"
    with pytest.raises(SystemExit, match=message), serving(["nowhere", "--batch", "0"]):  # refused before torch starts
        pass


def test_a_service_that_is_not_there_loses_requests():
    assert [status for status, _ in send("http://127.0.0.1:9", b"{}", 3)] == [0, 0, 0]
