"""Time from the command to the first question, beside a process that imports the same libraries and reads the same
weights: `python -m tools.cold_start [EXPORT PICTURE [OPTIONS of mmgen generate]]`; by default an untrained model of
BERT-base's size (110 million weights, 30,522 word pieces) with a ResNet-18, which writes 10 tokens, as a question has.

Both run in turns, five times each. It prints medians of the time on the clock and of the time on the processor, which
other programs on the machine disturb less. `--layers`, `--width` and `--words` set other sizes; they come first."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
ENCODER = """
import sys
from mmgen_encoders import Bert
layers, width, heads = map(int, sys.argv[1:4])
words = sys.stdin.read().split()
bert = Bert(num_hidden_layers=layers, hidden_size=width, num_attention_heads=heads, vocab_size=len(words)).build(words)
bert.model.save_pretrained("encoder")
bert.tokenizer.save_pretrained("encoder")
"""
RECIPE = """
name = "cold"
[backbone]
type = "bert"
weights = "encoder"
[inputs.image]
type = "regions"
extractor = { type = "roi" }
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 10
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


def untrained_export(folder: Path, layers: int, width: int, words: int) -> list[str]:
    """Run a recipe of few examples with an encoder of this size, and export it; arguments of `mmgen generate`."""
    letters = itertools.product(string.ascii_lowercase, repeat=4)
    pieces = " ".join("".join(word) for word in itertools.islice(letters, words))
    heads = width // 64 if width % 64 == 0 else 4
    sizes = [str(number) for number in (layers, width, heads)]
    subprocess.run([sys.executable, "-c", ENCODER, *sizes], cwd=folder, check=True, input=pieces, text=True)
    (folder / "cold.toml").write_text(RECIPE, encoding="utf-8")
    run = folder / "runs" / "cold" / "default" / "seed-0"
    for arguments in (["run", "cold.toml"], ["export", str(run), "export"]):
        subprocess.run([sys.executable, "-c", COMMAND, *arguments], cwd=folder, check=True, capture_output=True)
    pictures = sorted((folder / "export" / "examples").glob("*.jpg"))
    return [str(folder / "export"), str(pictures[0]), "--input", "caption=a red ball"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.cold_start", description=__doc__)
    for name, usual in (("layers", 12), ("width", 768), ("words", 30_522), ("rounds", 5)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("query", nargs=argparse.REMAINDER, help="an export, a picture and options of mmgen generate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        arguments = options.query or untrained_export(folder, options.layers, options.width, options.words)
        print(json.dumps(measure(arguments, folder / "modules.json", options.rounds)))


def measure(arguments: Sequence[str], modules: Path, rounds: int) -> dict[str, Any]:
    """Medians of the seconds of `mmgen generate` with these arguments and of its baseline, and their ratios, on the
    clock and on the processor. `modules`: a file for the names of imported modules."""
    code = MODULES.replace("sys.argv[0]", repr(str(modules)))
    subprocess.run([sys.executable, "-c", code, "generate", *arguments], check=True, capture_output=True)
    weights = sorted(Path(arguments[0]).rglob("*.safetensors"))
    commands, baselines = [], []
    for _ in range(rounds):
        commands.append(seconds(COMMAND, ["generate", *arguments]))
        baselines.append(seconds(BASELINE, [str(modules), *map(str, weights)]))
    figures: dict[str, Any] = {
        "bytes": sum(path.stat().st_size for path in weights),
        "modules": len(json.loads(modules.read_text())),
    }
    for place, kind in enumerate(("clock", "processor")):
        command, baseline = (statistics.median(pair[place] for pair in pairs) for pairs in (commands, baselines))
        figures[kind] = {"command": command, "baseline": baseline, "ratio": command / baseline}
    return figures


if __name__ == "__main__":
    main()
