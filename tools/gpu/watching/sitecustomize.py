"""Runs at the start of Python processes that GPU tests start (see `measures/on_gpu.py`): a process that used GPU
memory reports this when it exits. A killed process does not report, so it is not counted."""

import atexit
import importlib.util
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

FOLDER = "MMGEN_GPU_SEEN"


def say() -> None:
    """Write an empty file named after this process if it used GPU memory."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is not None and cuda.is_initialized() and cuda.memory_stats().get("allocation.all.allocated", 0):
        (Path(os.environ[FOLDER]) / f"{os.getpid()}").touch()


def hidden() -> None:
    """Run the sitecustomize module that this one shadows, if there is one."""
    folder = Path(__file__).resolve().parent
    spec = PathFinder.find_spec("sitecustomize", [path for path in sys.path if Path(path or ".").resolve() != folder])
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if __name__ == "sitecustomize":
    if FOLDER in os.environ:
        atexit.register(say)
    hidden()
