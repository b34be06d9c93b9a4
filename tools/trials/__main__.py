"""The command `python -m tools.trials PIECE`: run cases, go on where the last call ended, and print a table by
surface. The exit code is 1 if something is wrong."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import tempfile
from pathlib import Path

for variable, value in {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}.items():
    os.environ.setdefault(variable, value)

from . import PIECES, piece  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.trials", description=__doc__)
    parser.add_argument("piece", choices=PIECES)
    parser.add_argument("--count", type=int, help="how many kills, starts, inputs or runs of the tests there are to be")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after this time; 60 by default")
    parser.add_argument("--folder", type=Path, default=Path("trials"), help="of the journals; trials by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    module: piece.Piece = importlib.import_module(f"tools.trials.{options.piece}")
    journal = piece.Journal(options.folder / f"{options.piece}.jsonl", options.seed)
    count = module.COUNT if options.count is None else options.count
    try:
        with tempfile.TemporaryDirectory(prefix="mmgen-trials-") as folder:
            piece.run(module, journal, count, options.minutes, Path(folder), lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("stopped; the same command goes on")
    for table in (journal.table(module.TRIES), journal.phase_table(module.TRIES)):
        print(f"\n{table}" if table else "")
    for text in journal.wrong:
        print(f"wrong: {text}")
    return int(bool(journal.wrong))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    sys.exit(main())
