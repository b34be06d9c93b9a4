"""The load generator, against a service in this process."""

import json
import os

import pytest
from kit import served, servers

from tools.load import measure, memory, send, serving


def test_counts_answers_and_refusals(tmp_path):
    body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
    with servers.running(served.predictor(tmp_path)) as address:
        load = send(address, body, clients=3, requests=20, broken=0.25)
    assert load.statuses == {200: 15, 400: 5} and len(load.seconds) == 15
    assert 0 < load.percentile(50) <= load.percentile(95) and load.rate > 0


def test_rows_for_every_so_many_requests(tmp_path, capsys):
    body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
    with servers.running(served.predictor(tmp_path)) as address:
        measure(address, body, [(1, 2), (2, 4)], 0.5, os.getpid())
    rows = [line.split("|") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(row[1].strip(), row[6].strip()) for row in rows] == [("1", "200: 1, 400: 1"), ("2", "200: 2, 400: 2")]
    assert all(float(row[5]) > 0 and float(row[7]) > 10 for row in rows)


@pytest.mark.slow
def test_a_service_that_does_not_start_is_named():
    message = "^error: mmgen serve nowhere --batch 0 does not start; run it to see the reason$"
    with pytest.raises(SystemExit, match=message), serving(["nowhere", "--batch", "0"]):  # refused before torch starts
        pass


def test_a_service_that_is_not_there_loses_requests():
    load = send("http://127.0.0.1:9", b"{}", clients=2, requests=3)
    assert load.statuses == {0: 3} and load.seconds == []


def test_memory_of_this_process():
    assert memory(os.getpid()) > 10
