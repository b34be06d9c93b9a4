"""A run to judge and a sheet of it, made once; the key of a sheet."""

from pathlib import Path

import pytest
from kit.humaneval import SYSTEMS, make_sheet, write, write_run
from mmgen_humaneval.systems import gather

from mmgen.registry import installed


@pytest.fixture(scope="session")
def run(tmp_path_factory) -> Path:
    return write_run(tmp_path_factory.mktemp("judging") / "run")


@pytest.fixture(scope="session")
def sheet(run, tmp_path_factory):
    """(data, key) of six pictures."""
    return make_sheet(gather([run], (), installed()), tmp_path_factory.mktemp("sheet"), count=6)


@pytest.fixture
def key(tmp_path) -> Path:
    """Four pictures, one criterion; of the last both systems wrote one question."""
    questions = [
        {"id": f"{n}-{place}", "example": str(n), "text": f"{n}?", "systems": [system]}
        for n in (1, 2, 3)
        for place, system in enumerate(SYSTEMS, 1)
    ]
    questions.append({"id": "4-1", "example": "4", "text": "4?", "systems": SYSTEMS})
    return write(
        tmp_path / "s.key.json",
        {
            "format": "mmgen judge key 2",
            "seed": 0,
            "sheet": "abc",
            "criteria": ["readability"],
            "systems": SYSTEMS,
            "human": "human",
            "questions": questions,
        },
    )
