"""`tools/bench.py` with tiny sizes: every part gives rows, and a part that fails stops no other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kit import forked

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).resolve().parents[2] / "tools" / "bench.py"
PARTS = {  # in the order of --help -> some of their rows
    "exact": ["packed, fp32", "naive, bf16", "greedy scores, with a cache, fp32", "gradient, packed, bf16"],
    "sdpa": ["bf16, dropout 0.1: MATH", "a new length, cuDNN off"],
    "train": ["training, K = 5, bf16: ours", "training, K = 1, bf16: naive", "training, K = 3, bf16: BERT2BERT"],
    "decode": ["writing, greedy, bf16: naive", "writing, 4 beams, bf16: causal BERT", "6 samples that end, fp32"],
    "peak": ["greedy, 6 texts of 20"],
    "run": ["mmgen run bertgen_vqa.toml", "the same, SIGTERM after two steps", "resumed"],
    "loader": ["0 workers"],
    "oom": ["training with 0.0 of 0.0 GB"],
    "two": ["two processes, gloo"],
}
FEW, REST = ["exact", "train", "decode"], ["sdpa", "peak", "run", "loader", "oom", "two"]


def rows_of(folder: Path) -> dict[str, dict[str, dict]]:
    """Part -> row -> its line of JSON."""
    rows = {}
    for line in (folder / "bench.jsonl").read_text().splitlines():
        record = json.loads(line)
        rows.setdefault(record["part"], {})[record["what"]] = record
    return rows


@pytest.mark.parametrize("parts", [FEW, pytest.param(REST, marks=pytest.mark.exhaustive)], ids=["few", "rest"])
def test_every_part_gives_its_rows(tmp_path, parts):
    """In a new process that finds no mmgen but through the script."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"OUT": str(tmp_path)}
    command = [sys.executable, str(SCRIPT), "--tiny", "--parts", ",".join(parts)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, page = rows_of(tmp_path), (tmp_path / "bench.md").read_text()
    for part in parts:
        assert set(PARTS[part]) <= rows[part].keys(), rows[part].keys()
        assert all(f"| {part} | {what} | {row['value']} |" in page for what, row in rows[part].items())
        assert rows["MainProcess"][part]["value"] == "done"
    values = {what: row["value"] for part in parts for what, row in rows[part].items()}
    assert "FAILED" not in values.values(), page
    assert all("SIGTERM" in what or value.startswith("exit 0") for what, value in values.items() if "exit" in value)
    assert all(float(values.get(f"{what}, fp32", "0").split()[-1]) < 1e-4 for what in ("packed", "gradient, packed"))


def test_parts_that_fail_are_rows_and_unknown_ones_are_refused(tmp_path):
    script = f"import runpy; runpy.run_path({str(SCRIPT)!r}, run_name='__main__')"
    done = forked.run(script, "--tiny", "--words", "150", "--parts", "peak,sdpa", folder=tmp_path, OUT=str(tmp_path))
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path)
    assert [rows[part]["the part"]["value"] for part in ("peak", "sdpa")] == ["FAILED", "FAILED"]
    done = forked.run(script, "--tiny", "--parts", "peek", folder=tmp_path)
    assert done.returncode == 2 and done.stderr.endswith("error: unknown part: peek\n")
