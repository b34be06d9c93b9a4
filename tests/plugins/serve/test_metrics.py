"""Counts in the text format of Prometheus."""

import re

from kit import served
from mmgen_serve.metrics import Metrics


def test_histograms_are_cumulative():
    metrics = Metrics()
    for seconds in (0.01, 0.02, 99.0):
        metrics.count_request("/v1/ask", 200, seconds)
    metrics.count_batch(3)
    lines = metrics.text(waiting=2).splitlines()
    assert 'mmgen_requests_total{route="/v1/ask",status="200"} 3' in lines and "mmgen_waiting 2" in lines
    assert [line.split()[1] for line in lines if line.startswith("mmgen_request_seconds_bucket")] == (
        ["1", *["2"] * 9, "3"]
    )
    assert "mmgen_request_seconds_count 3" in lines and "mmgen_request_seconds_sum 99.030000" in lines
    assert 'mmgen_batch_size_bucket{le="2"} 0' in lines and 'mmgen_batch_size_bucket{le="4"} 1' in lines


def test_every_line_has_the_form_of_prometheus(client):
    client.post("/v1/ask", json={"inputs": {"image": served.encoded(), "caption": "a dog"}})
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    sample = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [0-9.]+')
    for line in response.text.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line
