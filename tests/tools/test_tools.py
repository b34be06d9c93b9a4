"""The scripts in tools/ run, each at its smallest; a kill that breaks a file is found, and the tutorial is current."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from kit import served, servers, toys
from transformers import VisualBertConfig, VisualBertForPreTraining

from tools import encoders, hub, kills, load, tutorial, writing

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parents[2] / "tools/bench.py"
FEW, REST = "exact,train,decode", "sdpa,peak,run,loader,oom,two"


@pytest.mark.exhaustive  # CI runs the script itself
@pytest.mark.parametrize("parts", [FEW, REST])
def test_every_part_of_the_benchmark_gives_its_rows(tmp_path, parts):
    """In a new process that finds no mmgen but through the script."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OUT": str(tmp_path)}
    command = [sys.executable, str(BENCH), "--tiny", "--parts", parts]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "bench.jsonl").read_text().splitlines()]
    assert {record["part"] for record in records} == {*parts.split(","), "MainProcess"}
    for record in records:
        value, exact = record["value"], record["what"].endswith("packed, fp32") and record["part"] == "exact"
        assert value != "FAILED" and (not exact or float(value.split()[-1]) < 1e-4), record
        assert "SIGTERM" in record["what"] or not re.match("exit [^0]", value), record


def test_killed_commands_end_as_undisturbed_ones(capsys):
    assert kills.main(["--count", "4", "--seed", "1"]) == 0
    assert re.fullmatch(r"[4-6] kills in \d+ cases, 0 wrong, \d+ s\n", capsys.readouterr().out)


@pytest.mark.exhaustive
@pytest.mark.parametrize("broken", [False, True])
def test_a_kill_before_every_call_finds_a_file_that_is_written_in_place(tmp_path, monkeypatch, broken):
    extraction = kills.prepare(["features"], tmp_path)["features"]

    def write_in_place(self, target):
        content = self.read_bytes()
        Path(target).write_bytes(content[:100])
        with Path(target).open("ab") as file:  # a call before which it is killed
            file.write(content[100:])
        self.unlink()

    if broken:
        monkeypatch.setattr(Path, "replace", write_in_place)
        extraction.calls += 2
    cases = [extraction.case([(kills.LIMIT, call)]) for call in range(1, extraction.calls + 1)]
    assert all(killed == 1 for killed, _ in cases) and len(cases) > 5
    wrong = "\n".join(filter(None, (text for _, text in cases)))
    assert ("regions/part-00000.h5: not a part" in wrong) == broken and (broken or not wrong)


def test_a_published_visualbert_equals_transformers(tmp_path):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    VisualBertForPreTraining(VisualBertConfig(**sizes, visual_embedding_dim=8)).save_pretrained(tmp_path)
    assert hub.difference(str(tmp_path), 8) < 1e-5


@pytest.mark.exhaustive
def test_an_encoder_family_has_a_row():
    name, plain, writing_time = encoders.row("albert").split("|")[1:-1]
    assert name.strip() == "`albert`" and 0.3 < float(plain) < 3 and float(writing_time) > 1


def test_a_service_under_load_has_a_row():
    body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
    with servers.running(served.predictor()) as address:
        clients, rate, *_, statuses = load.row(address, os.getpid(), body, 2, 4).split("|")[1:-1]
        assert [status for status, _ in load.send(address, b"{", 2)] == [400, 400]
    assert (clients.strip(), statuses.strip()) == ("2", "200: 4") and float(rate) > 0


@pytest.mark.exhaustive
def test_every_way_to_write_has_a_row(tmp_path, no_page, capsys):
    steps = {"both": {"inputs": ["caption"], "train": ["backbone"]}}
    recipe = toys.recipe(name="writing", generator={"type": "any_order", "max_tokens": 24}, steps=steps)
    (tmp_path / "writing.toml").write_text(f"{recipe}[profiles.any_order]\n")
    assert toys.mmgen_here(tmp_path, "run", "writing.toml", "--profile", "any_order").returncode == 0
    writing.main([str(tmp_path / "runs/writing/any_order/seed-0")])
    rows = capsys.readouterr().out.partition("| way |")[2].splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [
        f"| {name}" for name in (*writing.WAYS["any_order"], "infilling, any_order")
    ]


def test_the_tutorial_runs_and_its_outputs_are_current(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = tutorial.NOTEBOOK.read_text(encoding="utf-8")
    assert "/tmp" not in text and "/home" not in text and len(text) < 100_000
    notebook = json.loads(text)
    current = copy.deepcopy(notebook)
    tutorial.run_cells(current)
    cells = [tutorial.code_cells(one) for one in (notebook, current)]
    for number, (stored, cell) in enumerate(zip(*cells, strict=True), 1):
        stale = f"cell {number} is out of date; python -m tools.tutorial"
        assert [*map(tutorial.kinds, stored["outputs"])] == [*map(tutorial.kinds, cell["outputs"])], stale
    answer = cells[1][-1]["outputs"][0]["data"]
    assert answer["text/plain"][0].startswith("<Answer to ") and answer["text/html"][0].startswith("<img src=")
