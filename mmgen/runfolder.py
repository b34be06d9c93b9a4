"""A run's folder: what is in it, whose it is, and that only one process writes it.

    runs/<name>/<profile>/seed-<n>/
        recipe.json  environment.json  data.json  inputs.json  backbone/
        steps/<step>/{weights.safetensors, generations.jsonl, scores.json, log.jsonl}
        times.json  table.md  report.html  curves/
"""

from __future__ import annotations

import contextlib
import json
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from . import checkpoint
from .datasets import Datasets
from .errors import RunError
from .recipe import Recipe, from_json
from .registry import Registry

LOCK = ".lock"
VERSIONS = ("mmgen-framework", "torch", "transformers", "accelerate", "tokenizers", "timm", "numpy", "pycocoevalcap")


class RunFolder:
    """Paths and the files that describe a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, recipe: Recipe) -> RunFolder:
        return cls(Path(recipe.output) / recipe.name / (recipe.profile or "default") / f"seed-{recipe.seed}")

    def step(self, name: str) -> Path:
        return self.path / "steps" / name

    def finished(self, step: str, file: str = "scores.json") -> bool:
        return (self.step(step) / file).exists()

    def done(self, recipe: Recipe, step: str) -> bool:
        """Whether nothing is left to do for a step; one that is not evaluated ends with its weights."""
        return self.finished(step, "scores.json" if recipe.steps[step].evaluate else "weights.safetensors")

    @property
    def backbone(self) -> Path:
        return self.path / "backbone"

    def seeds(self) -> dict[int, RunFolder]:
        """The runs beside this one, and it, by their seed: those whose recipes differ in nothing else."""
        own = checkpoint.read_json(self.path / "recipe.json")
        found = {}
        for path in sorted(self.path.parent.glob("seed-*/recipe.json")):
            recipe = checkpoint.read_json(path)
            if {**recipe, "seed": None} == {**own, "seed": None}:
                found[recipe["seed"]] = RunFolder(path.parent)
        return dict(sorted(found.items()))

    def recipe(self, registry: Registry) -> Recipe:
        path = self.path / "recipe.json"
        if not path.exists():
            raise RunError(f"{self.path}: no recipe.json there; give a run's folder (runs/<name>/<profile>/seed-<n>)")
        return from_json(path.read_text(encoding="utf-8"), registry, str(path))

    def claim(self, recipe: Recipe, datasets: Datasets, fresh: bool) -> None:
        """Make the folder this recipe's. Raises RunError when it is another's, and says what differs."""
        if fresh and self.path.exists():
            self._empty()
        fingerprint = datasets.fingerprint()
        if any(self.path.glob("steps/*/*")):  # a run that failed before it learnt anything claims nothing
            before = checkpoint.read_json(self.path / "recipe.json")
            changes = differences(before, recipe.identity())
            saved = checkpoint.read_json(self.path / "data.json")["fingerprint"] if (self.path / "data.json").exists() else fingerprint
            if saved != fingerprint:
                changes.append("the data set's examples have changed")
            if changes:
                raise RunError("\n".join([f"{self.path} holds a run of another recipe; use --fresh to do it anew, or another name:", *(f"  {change}" for change in changes)]))
        checkpoint.write_json(self.path / "data.json", {"fingerprint": fingerprint, **datasets.main.describe()})
        checkpoint.write_json(self.path / "environment.json", environment())
        checkpoint.write_json(self.path / "recipe.json", recipe.identity())

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the seconds that work on a step takes to `times.json`; of a kill, nothing is added."""
        began = time.monotonic()
        yield
        seconds = self.times()
        seconds[step] = round(seconds.get(step, 0) + time.monotonic() - began, 1)
        checkpoint.write_json(self.path / "times.json", seconds)

    def times(self) -> dict[str, float]:
        """Seconds a step took, in the sittings that came to their end."""
        path = self.path / "times.json"
        return checkpoint.read_json(path) if path.exists() else {}

    def _empty(self) -> None:
        """Everything goes but the lock, which this very run holds."""
        for path in self.path.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:
                path.unlink()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one run writes here. The system lets go of the lock when its process ends, however it ends."""
        import fcntl

        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / LOCK).open("w")
        except OSError as error:
            raise RunError(f"{self.path}: cannot be written: {error}") from None
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise RunError(f"{self.path}: another run is writing here; wait for it, or stop it") from None
            yield


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """What differs between two tables, a line each: path: then -> now."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [line for key in dict.fromkeys([*before, *now]) for line in differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))]
    return [] if before == now else [f"{path}: {json.dumps(before)} -> {json.dumps(now)}"]


def environment() -> dict[str, Any]:
    """Versions, machine and device: what besides recipe and data can change a result."""
    import torch

    versions = {}
    for name in VERSIONS:
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {
        "command": " ".join(["mmgen", *sys.argv[1:]]),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "versions": versions,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "can change the result": "another device, another number of threads, another version of torch or transformers",
    }
