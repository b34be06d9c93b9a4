"""The command line `python -m tools.gpu`, for the root of a checkout. No installation is needed."""

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
    raise SystemExit(f"error: a run on a GPU needs Python 3.11 or newer, but this is {sys.version.split()[0]}")

from .checkout import READY, ROOT, commit, environment
from .needs import lacking, needed, refusal


def main() -> int:
    """Exit code 0 if all requested parts are done, or if there is no GPU and none was requested."""
    options = parse_options()
    if missing := lacking(needed()):
        print(refusal(missing), file=sys.stderr)
        if not options.list:
            return 1
    if os.environ.get(READY) != "1":  # the processes of a run need paths, entry points and threads from the start
        ready = environment(options.folder / "installed", options.stand_in)
        os.execve(sys.executable, [sys.executable, "-m", "tools.gpu", *sys.argv[1:]], ready)
    if options.list:
        return print_parts(options)
    return measure(options)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.gpu", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print parts and commands without running them")
    parser.add_argument("--only", action="append", metavar="PART", help="run this part only; may be repeated")
    parser.add_argument(
        "--again", action="append", metavar="PART", default=[], help="measure this part again; may be repeated"
    )
    parser.add_argument("--stand-in", action="store_true", help="use tiny sizes on the CPU; the figures mean nothing")
    parser.add_argument("--minutes", type=float, help="stop after this many minutes")
    parser.add_argument("--folder", type=Path, default=Path("runs/gpu"), help="folder for journals, logs and results")
    parser.add_argument("--page", type=Path, help="the page to write; by default page.md in the folder")
    parser.add_argument("--commit", help="the commit, for a checkout without git")
    options = parser.parse_args()
    options.folder, options.page = options.folder.resolve(), (options.page or options.folder / "page.md").resolve()
    return options


def requested_parts(options: argparse.Namespace) -> list:
    """The requested parts, in order of importance."""
    from .parts import PARTS

    names = [part.name for part in PARTS]
    for name in [*(options.only or []), *options.again]:
        if name not in names:
            raise SystemExit(f"error: unknown part '{name}'; choose from: {', '.join(names)}")
    return [part for part in PARTS if not options.only or part.name in [*options.only, *options.again]]


def print_parts(options: argparse.Namespace) -> int:
    """Print what would run on a GPU."""
    from .sizes import REAL, TINY

    for part in requested_parts(options):
        print(f"{part.name}: {part.title}")
        for step in part.steps(TINY if options.stand_in else REAL, options.folder / "work" / part.name):
            print(f"    {step.name}: {shlex.join(['python', *step.arguments])}".replace(f"{ROOT}/", ""))
    return 0


def measure(options: argparse.Namespace) -> int:
    """Measure the requested parts, and write the page after each."""
    from . import machine, page
    from .parts import PARTS
    from .run import Run
    from .sizes import REAL, TINY

    parts = requested_parts(options)
    here = machine.here() if options.stand_in else machine.query()
    if here.name is None and not options.stand_in:
        print("no GPU found, so nothing is measured; skipped parts:")
        print("\n".join(f"    {part.name}: {part.title}" for part in parts))
        print("`--stand-in` runs every part with tiny sizes on the CPU; `--list` shows the commands")
        return 0
    run = Run(options.folder, here, commit(options.commit), TINY if options.stand_in else REAL)
    if options.stand_in:
        run.forked, run.slug = True, page.STAND_IN  # never among what a GPU has measured
    run.until = time.monotonic() + 60 * options.minutes if options.minutes is not None else None
    for part in parts:
        if part.name in options.again:
            run.journal(part).forget()
            shutil.rmtree(run.work / part.name, ignore_errors=True)
    if run.forked and not run.finished(parts):
        preload()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a machine that is taken away is a Ctrl-C
    print(f"{here}; commit {run.commit}", flush=True)
    if run.commit == "unknown":
        print("unknown commit: the checkout has no git; name the commit with --commit")
    try:
        run.measure(parts, behind=lambda: page.write(options.page, options.folder, PARTS, options.stand_in))
    except KeyboardInterrupt:
        print("stopped; run the same command again to continue")
    page.write(options.page, options.folder, PARTS, options.stand_in)
    print(f"page: {options.page}")
    return 0 if run.finished(parts) else 1


def preload() -> None:
    """Import what forked processes need, once."""
    import gc

    import _pytest.fixtures  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import mmgen_encoders.loading  # noqa: F401
    import mmgen_masked.generator  # noqa: F401
    import mmgen_regions.embedder  # noqa: F401
    import timm  # noqa: F401

    from .measures import cuts, epochs, passes, ranks  # noqa: F401

    gc.collect()
    gc.freeze()  # so that collections during tests of little memory skip these modules


if __name__ == "__main__":
    raise SystemExit(main())
