"""The command `python -m tools.trials PIECE`: run cases, go on where the last call ended, and print a table by
surface. The exit code is 1 if something is wrong, and 3 if cases are left for another call."""

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

from mmgen.files import locked  # noqa: E402

from . import PIECES, piece  # noqa: E402

UNFINISHED = 3  # exit code


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.trials", description=__doc__)
    parser.add_argument("piece", choices=PIECES)
    parser.add_argument("--count", type=int, help="how many kills, starts, inputs or runs of the tests there are to be")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after this time; 60 by default")
    parser.add_argument("--folder", type=Path, default=Path("trials"), help="of the journals; trials by default")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    module: piece.Piece = importlib.import_module(f"tools.trials.{options.piece}")
    path = options.folder / f"{options.piece}.jsonl"
    options.folder.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), lambda holder: sys.exit(f"error: {path} is in use by {holder}")):
        return _run(module, piece.Journal(path, options.seed, module.cycle()), options)


def _run(module: piece.Piece, journal: piece.Journal, options: argparse.Namespace) -> int:
    count = module.COUNT if options.count is None else options.count
    try:
        with tempfile.TemporaryDirectory(prefix="mmgen-trials-") as folder:
            piece.run(module, journal, count, options.minutes, Path(folder), lambda text: print(text, flush=True))
    except KeyboardInterrupt:
        print("stopped")
    for table in (journal.table(module.TRIES), journal.phase_table(module.TRIES)):
        print(f"\n{table}" if table else "")
    for text in journal.wrong:
        print(f"wrong: {text}")
    if left := journal.tries < count:
        print(f"{journal.tries:,} of {count:,} {module.TRIES} are done; the same command goes on")
    return 1 if journal.wrong else UNFINISHED if left else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    sys.exit(main())
