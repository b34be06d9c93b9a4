"""Several processes that train together (gloo, on CPUs): their recipe, their start and their log."""

import json
import os
from pathlib import Path
from subprocess import CompletedProcess

from kit import forked, toys

TESTS = Path(__file__).resolve().parents[1]
PATHS = {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS / "training"), os.environ.get("PYTHONPATH", "")])}
BOTH = {"inputs": ["caption"], "train": ["backbone"], "objectives": ["generator", "words"]}
RECIPE = toys.recipe(  # two losses with counts of their own
    training={"micro_batch_size": 4, "epochs": 2, "checkpoint_every": 2},
    objectives={"words": {"type": "masked_words"}},
    steps={"first": BOTH, "second": {**BOTH, "start": "first"}},
    data={"train_size": 21},
)

# Runs `mmgen` with this process's files opened for writing noted down, and dies in the middle where it is told to.
WATCHED = """
    import atexit, os, signal, sys
    rank = os.environ["RANK"]
    opened = open(f"opened-{rank}.txt", "w")

    def watch(event, args):
        if event in ("open", "os.rename", "os.remove", "os.mkdir") and "runs/" in str(args[0]):
            by_mode = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
            if event != "open" or by_mode or (isinstance(args[2], int) and args[2] & 3):
                opened.write(f"{event} {args[0]}\\n")
                opened.flush()

    def left():  # called last of all: whether the process group was taken down by then
        from torch import distributed
        open(f"left-{rank}.txt", "w").write(str(not distributed.is_initialized()))

    atexit.register(left)
    sys.addaudithook(watch)
    import mmgen.report
    from mmgen.cli import main
    mmgen.report.try_page = lambda *_: None  # as `no_page` does
    if f"DIE_{rank}" in os.environ:
        from mmgen.training.train import Trainer
        update = Trainer.update

        def die(self, number, *args, **kwargs):
            if number == int(os.environ[f"DIE_{rank}"]):
                os.kill(os.getpid(), signal.SIGKILL)
            return update(self, number, *args, **kwargs)

        Trainer.update = die
    main()
"""


def several(processes: int, folder: Path, script: str, *arguments: str, **environment: str) -> CompletedProcess:
    """Processes that share one start; the test `launched` covers what `torchrun` does differently."""
    return forked.run_together(processes, script, *arguments, folder=folder, **PATHS, **environment)


def log(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
