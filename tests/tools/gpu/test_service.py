"""The part about the service: its lines, its stand-in, and a small service under load."""

from types import SimpleNamespace

import pytest

from tools.gpu.machine import Machine
from tools.gpu.measures.service import measure
from tools.gpu.parts.service import SERVICE, lines
from tools.gpu.sizes import TINY

HERE = Machine(None, 0.0, 0, "a processor", 2, {"torch": "2"})


def test_the_lines_of_the_page():
    load = {"rate": 12.34, "median": 80.0, "high": 95.4, "lost": 0}
    figures = {"service": {"32": {"clients": {"8": load}, "memory": 812.2}}}
    assert lines(figures, HERE)[-1] == "| 32 | 8 | 12.3 | 80 | 95 | 0 | 812 |"
    assert lines({}, HERE) == []


def test_the_stand_in_is_tiny(tmp_path):
    (step,) = SERVICE.steps(TINY, tmp_path)
    assert step.arguments[:2] == ("-m", "tools.gpu.measures.service") and step.arguments[-1] == "8"


@pytest.mark.exhaustive
def test_a_small_service_under_load(tmp_path, no_page):
    sizes = SimpleNamespace(layers=1, width=16, images=8, requests=33, device="cpu")
    figures = measure(sizes, tmp_path)
    assert [*figures] == ["1", "32"]
    for result in figures.values():
        assert result["memory"] > 10
        for load in result["clients"].values():
            assert load["lost"] == 0 and load["rate"] > 0 and load["median"] <= load["high"]
