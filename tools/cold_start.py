"""Time from the command to its first text, beside a process that imports the same libraries and reads the same weights.

    python -m tools.cold_start [--rounds 5] EXPORT PICTURE [OPTIONS of mmgen generate]

Both run in turns. It prints medians of the seconds on the clock and of those on the processor, which other programs on
the machine disturb less."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

COMMAND = "from mmgen.cli import main; main()"
MODULES = """
import sys
from pathlib import Path
from mmgen.cli import main
file = Path(sys.argv.pop(1))
try:
    main()
finally:
    file.write_text(" ".join(name for name in sys.modules if not name.startswith(("mmgen", "__"))))
"""
BASELINE = """
import importlib, sys
from pathlib import Path
for name in Path(sys.argv[1]).read_text().split():
    try:
        importlib.import_module(name)
    except Exception:
        pass  # some modules cannot be imported by name
from safetensors.torch import load_file
weights = [load_file(path) for path in sys.argv[2:]]
print("ready\\nready", flush=True)
"""


def seconds(code: str, arguments: Sequence[str]) -> tuple[float, float]:
    """Seconds until a process has printed its second line, and its seconds on the processor. Raises RuntimeError."""
    start = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)
    lines = [process.stdout.readline() for _ in range(2)]
    elapsed = time.perf_counter() - start
    process.stdout.read()
    _, process.returncode, usage = os.wait4(process.pid, 0)
    if process.returncode or not all(lines):
        raise RuntimeError(f"the process failed: {arguments}")
    return elapsed, usage.ru_utime + usage.ru_stime


def measure(arguments: Sequence[str], modules: Path, rounds: int) -> str:
    """A table of `mmgen generate` with these arguments and of its baseline. `modules`: a file for the names of what the
    command imports."""
    generate = ["generate", *arguments]
    subprocess.run([sys.executable, "-c", MODULES, str(modules), *generate], check=True, capture_output=True)
    baseline = [str(modules), *map(str, sorted(Path(arguments[0]).rglob("*.safetensors")))]
    times = [(*seconds(COMMAND, generate), *seconds(BASELINE, baseline)) for _ in range(rounds)]
    command, command_processor, base, base_processor = map(statistics.median, zip(*times, strict=True))
    return (
        "| | command | baseline | ratio |\n|---|---:|---:|---:|\n"
        f"| clock, s | {command:.2f} | {base:.2f} | {command / base:.2f} |\n"
        f"| processor, s | {command_processor:.2f} | {base_processor:.2f} | {command_processor / base_processor:.2f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.cold_start", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("query", nargs=argparse.REMAINDER, help="an export, a picture and options of mmgen generate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(measure(options.query, Path(folder) / "modules", options.rounds))


if __name__ == "__main__":
    main()
