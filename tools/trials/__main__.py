"""The command `python -m tools.trials PIECE`: run cases, go on where the last call ended, and print a table by
surface. The exit code is 1 if something is wrong or was never tried, and 3 if cases are left for another call."""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
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
    parser.add_argument("--again", action="store_true", help="run the cases again that the journal says are wrong")
    options = parser.parse_args(arguments)
    module: piece.Piece = importlib.import_module(f"tools.trials.{options.piece}")
    path = options.folder / f"{options.piece}.jsonl"
    options.folder.mkdir(parents=True, exist_ok=True)
    with locked(path.with_suffix(".lock"), lambda holder: sys.exit(f"error: {path} is in use by {holder}")):
        return _run(module, piece.Journal(path, options.seed, module.cycle()), options)


def _run(module: piece.Piece, journal: piece.Journal, options: argparse.Namespace) -> int:
    count = module.COUNT if options.count is None else options.count
    try:
        with _folder(module, options) as folder:
            say = partial(print, flush=True)
            piece.run(module, journal, count, options.minutes, folder, say, options.again)
    except KeyboardInterrupt:
        print("stopped")
    for table in (journal.table(module.TRIES), journal.phase_table(module.TRIES)):
        print(f"\n{table}" if table else "")
    print("cases by commit:", ", ".join(f"{commit}: {cases:,}" for commit, cases in journal.commits.items()) or "none")
    for text in journal.wrong:
        print(f"wrong: {text}")
    left = journal.tries < count
    untried = [] if left else journal.untried
    for name in untried:
        print(f"not tried: {name}; choose a larger --count")
    if left:
        goes_on = "the command without --again" if options.again else "the same command"
        print(f"{journal.tries:,} of {count:,} {module.TRIES} are done; {goes_on} goes on")
    return 1 if journal.wrong or untried else UNFINISHED if left else 0


@contextmanager
def _folder(module: piece.Piece, options: argparse.Namespace) -> Iterator[Path]:
    """The folder for the files of cases."""
    if module.KEEPS:
        folder = options.folder / f"{options.piece}-{options.seed}"
        folder.mkdir(exist_ok=True)
        yield folder
    else:
        with tempfile.TemporaryDirectory(prefix="mmgen-trials-") as temporary:
            yield Path(temporary)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    sys.exit(main())
