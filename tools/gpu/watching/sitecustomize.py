"""Runs as Python starts in what tests on a GPU start themselves (see `measures/on_gpu.py`): a process that has taken
memory of the device says so when it ends. One that is killed does not, so it is not counted."""

import atexit
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

FOLDER = "MMGEN_GPU_SEEN"


def say() -> None:
    """An empty file, named after this process, where it has taken memory."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized() and cuda.memory_stats().get("allocation.all.allocated", 0):
        (Path(os.environ[FOLDER]) / f"{os.getpid()}").touch()


def hidden() -> None:
    """Runs the sitecustomize that this one stands before, if there is one."""
    folder = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if Path(path or ".").resolve() != folder])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    if FOLDER in os.environ:
        atexit.register(say)
    hidden()
