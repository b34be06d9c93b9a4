"""The tutorial: its cells run in order, offline, and the stored outputs are of the same kinds as today's."""

import copy
import json

import pytest

from tools.tutorial import NOTEBOOK, code_cells, kinds, run_cell, run_cells


@pytest.fixture(scope="module")
def notebook():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_tutorial_runs_and_its_outputs_are_current(notebook, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    current = copy.deepcopy(notebook)
    run_cells(current)
    for number, (stored, cell) in enumerate(zip(code_cells(notebook), code_cells(current), strict=True), 1):
        stale = f"cell {number} is out of date; python -m tools.tutorial"
        assert [*map(kinds, stored["outputs"])] == [*map(kinds, cell["outputs"])], stale
        assert stored["execution_count"] == cell["execution_count"]
    answer = code_cells(current)[-1]["outputs"][0]["data"]
    assert answer["text/plain"][0].startswith("<Answer to ") and answer["text/html"][0].startswith("<img src=")


def test_the_stored_outputs_have_no_path_of_a_machine_and_are_small(notebook):
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert "/tmp" not in text and "/home" not in text and len(text) < 100_000
    shown = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    assert sum("<img" in "".join(output["data"].get("text/html", "")) for output in shown) == 1


def test_a_cell_shows_what_it_prints_and_its_last_expression():
    assert [*run_cell("print('a')\nx = 5\nx", {}, 3)] == [
        {"name": "stdout", "output_type": "stream", "text": ["a\n"]},
        {"data": {"text/plain": ["5"]}, "execution_count": 3, "metadata": {}, "output_type": "execute_result"},
    ]
    assert not [*run_cell("x = 5", {}, 1)]
    with pytest.raises(ZeroDivisionError):
        [*run_cell("1 / 0", {}, 1)]
