"""The command line: `python -m tools.gpu`, from the root of a checkout, which need not be installed."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  before anything that an older Python cannot read
    raise SystemExit(f"error: a run on a GPU needs Python 3.11 or newer, and this is {sys.version.split()[0]}")

from .checkout import READY, ROOT, commit, environment
from .needs import lacking, needed, refusal


def main() -> int:
    """0 where everything that was asked for is done, or there is no GPU and nothing was asked."""
    chosen = options()
    if missing := lacking(needed()):
        print(refusal(missing), file=sys.stderr)
        if not chosen.list:
            return 1
    if os.environ.get(READY) != "1":  # the processes of a run need paths, entry points and threads from the start
        ready = environment(chosen.folder / "installed", chosen.stand_in)
        os.execve(sys.executable, [sys.executable, "-m", "tools.gpu", *sys.argv[1:]], ready)
    if chosen.list:
        return listed(chosen)
    return measure(chosen)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print parts and commands, and run nothing")
    parser.add_argument("--only", action="append", metavar="PART", help="this part; may be repeated")
    parser.add_argument("--again", action="append", metavar="PART", default=[], help="measure this part anew")
    parser.add_argument("--stand-in", action="store_true", help="tiny sizes on the processor; no figure means anything")
    parser.add_argument("--minutes", type=float, help="end after so many minutes; what runs then is stopped")
    parser.add_argument("--folder", type=Path, default=Path("runs/gpu"), help="journals, logs and what is made")
    parser.add_argument("--page", type=Path, help="where the page goes; by default page.md in the folder")
    parser.add_argument("--commit", help="the commit, where there is no git to ask")
    chosen = parser.parse_args()
    chosen.folder, chosen.page = chosen.folder.resolve(), (chosen.page or chosen.folder / "page.md").resolve()
    return chosen


def picked(chosen: argparse.Namespace) -> list:
    """The parts that were asked for, in order of worth."""
    from .parts import PARTS

    names = [part.name for part in PARTS]
    for name in [*(chosen.only or []), *chosen.again]:
        if name not in names:
            raise SystemExit(f"error: there is no part '{name}'; there are: {', '.join(names)}")
    return [part for part in PARTS if not chosen.only or part.name in [*chosen.only, *chosen.again]]


def listed(chosen: argparse.Namespace) -> int:
    """What would be run on a GPU."""
    from .sizes import REAL, TINY

    for part in picked(chosen):
        print(f"{part.name}: {part.title}")
        for step in part.steps(TINY if chosen.stand_in else REAL, chosen.folder / "work" / part.name):
            print(f"    {step.name}: {shlex.join(['python', *step.arguments])}".replace(f"{ROOT}/", ""))
    return 0


def measure(chosen: argparse.Namespace) -> int:
    """The run, and the page behind every part."""
    from . import machine, page
    from .parts import PARTS
    from .run import Run
    from .sizes import REAL, TINY

    parts = picked(chosen)
    here = machine.here() if chosen.stand_in else machine.query()
    if here.name is None and not chosen.stand_in:
        print("no GPU here, so nothing is measured; left out:")
        print("\n".join(f"    {part.name}: {part.title}" for part in parts))
        print("`--stand-in` runs every part with tiny sizes on the processor, `--list` shows the commands")
        return 0
    run = Run(chosen.folder, here, commit(chosen.commit), TINY if chosen.stand_in else REAL)
    if chosen.stand_in:
        run.forked, run.slug = True, page.STAND_IN  # never among what a GPU has measured
    run.until = time.monotonic() + 60 * chosen.minutes if chosen.minutes is not None else None
    for part in parts:
        if part.name in chosen.again:
            run.journal(part).forget()
            shutil.rmtree(run.work / part.name, ignore_errors=True)
    if run.forked and not run.finished(parts):
        preload()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a machine that is taken away is a Ctrl-C
    print(f"{here}; commit {run.commit}", flush=True)
    if run.commit == "unknown":
        print("there is no git to ask for the commit: `--commit` names it, and without it the figures are of nothing")
    try:
        run.measure(parts, behind=lambda: page.write(chosen.page, chosen.folder, PARTS, chosen.stand_in))
    except KeyboardInterrupt:
        print("stopped; the same command goes on")
    page.write(chosen.page, chosen.folder, PARTS, chosen.stand_in)
    print(f"the page: {chosen.page}")
    return 0 if run.finished(parts) else 1


def preload() -> None:
    """What forked processes need is imported once."""
    import gc

    import _pytest.fixtures  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import mmgen_encoders.loading  # noqa: F401
    import mmgen_masked.generator  # noqa: F401
    import mmgen_regions.embedder  # noqa: F401
    import timm  # noqa: F401

    from .measures import cuts, epochs, passes, ranks  # noqa: F401

    gc.collect()
    gc.freeze()  # what is here now is not looked through again whenever memory is cut


if __name__ == "__main__":
    raise SystemExit(main())
