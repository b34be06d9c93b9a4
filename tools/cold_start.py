"""Time from the command to the first question, beside a process that imports the same libraries and reads the same
weights: `python -m tools.cold_start [EXPORT PICTURE [OPTIONS of mmgen generate]]`; by default an untrained model of
BERT-base's size with a ResNet-18. Both run in turns, five times each; medians are printed, of the time on the clock and
of the time on the processor, which other programs on the machine disturb less."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROUNDS = 5
MODULES = """
import json, sys
from mmgen.cli import main
try:
    main()
finally:
    names = [name for name in list(sys.modules) if not name.startswith(("mmgen", "__"))]
    open(sys.argv[0], "w").write(json.dumps(names))
"""
COMMAND = "from mmgen.cli import main; main()"
BASELINE = """
import importlib, json, sys
for name in json.load(open(sys.argv[1])):
    try:
        importlib.import_module(name)
    except Exception:
        pass
from safetensors.torch import load_file
weights = [load_file(path) for path in sys.argv[2:]]
print("ready")
print("ready", flush=True)
"""
RECIPE = """
name = "cold"
[backbone]
type = "bert"
num_hidden_layers = 12
hidden_size = 768
num_attention_heads = 12
[inputs.image]
type = "regions"
extractor = { type = "roi" }
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
epochs = 1
batch_size = 8
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
[data]
type = "scenes"
train_size = 8
val_size = 1
test_size = 1
"""


def seconds(code: str, arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds until a process has printed its second line, and its seconds on the processor. Raises RuntimeError."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    elapsed = time.perf_counter() - start
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status or not all(lines):
        raise RuntimeError(f"the process failed: {arguments}")
    return elapsed, usage.ru_utime + usage.ru_stime


def untrained_export(folder: Path) -> list[str]:
    """Run a recipe of few examples, and export it; arguments of `mmgen generate`."""
    (folder / "cold.toml").write_text(RECIPE, encoding="utf-8")
    run = folder / "runs" / "cold" / "default" / "seed-0"
    for arguments in (["run", "cold.toml"], ["export", str(run), "export"]):
        subprocess.run([sys.executable, "-c", COMMAND, *arguments], cwd=folder, check=True, capture_output=True)
    pictures = sorted((folder / "export" / "examples").glob("*.jpg"))
    return [str(folder / "export"), str(pictures[0]), "--input", "caption=a red ball"]


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        arguments = sys.argv[1:] or untrained_export(Path(temporary))
        modules = Path(temporary) / "modules.json"
        code = MODULES.replace("sys.argv[0]", repr(str(modules)))
        subprocess.run([sys.executable, "-c", code, "generate", *arguments], check=True, capture_output=True)
        weights = sorted(Path(arguments[0]).rglob("*.safetensors"))
        size = sum(path.stat().st_size for path in weights)
        times: dict[str, list[tuple[float, float]]] = {"command": [], "imports and weights": []}
        for _ in range(ROUNDS):
            times["command"].append(seconds(COMMAND, ["generate", *arguments]))
            times["imports and weights"].append(seconds(BASELINE, [str(modules), *map(str, weights)]))
        print(json.dumps({"bytes": size, "modules": len(json.loads(modules.read_text())), "seconds": times}))
        for place, kind in enumerate(("on the clock", "on the processor")):
            command, baseline = (statistics.median(pair[place] for pair in values) for values in times.values())
            print(
                f"{kind}: command {command:.2f} s, imports and weights {baseline:.2f} s, ratio {command / baseline:.2f}"
            )


if __name__ == "__main__":
    main()
