"""A run's folder: names of its files, its recipe, its lock, other seeds, leftovers, files that are outdated.

runs/<name>/<profile>/seed-<n>/
    recipe.json  environment.json  data.json  inputs.json  labels.json  backbone/
    examples.jsonl  examples/  references.json
    steps/<step>/{weights.safetensors, generations.jsonl, scores.json, log.jsonl}
    table.md  report.html  probes/<probe>/

An export is such a folder with one step, without data: recipe.json, inputs.json, labels.json, backbone/, the step's
weights, extractor/<input>/ and README.md.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data.datasets import Datasets
from ..errors import MmgenError, RecipeError, RunError
from ..features.fingerprints import differences
from ..files import clear_partials, locked, read_table, write_json
from ..recipe.load import from_values
from ..recipe.paths import with_real_paths
from ..recipe.tables import BESIDE, Recipe
from ..registry import Registry, installed
from .environment import environment

log = logging.getLogger("mmgen")

LOCK = ".lock"
STARTED = "started_in"  # key of recipe.json: the folder in which the run was started
WEIGHTS = "weights.safetensors"
NOT_TRAINED = ("decoding", "metrics", "probes")  # tables that weights do not depend on


class RunFolder:
    """The paths of a run, and the files that describe it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, recipe: Recipe) -> RunFolder:
        return cls(Path(recipe.output) / recipe.name / (recipe.profile or "default") / f"seed-{recipe.seed}")

    @classmethod
    def found_in(cls, path: Path) -> list[RunFolder]:
        """The runs at a path: the folder itself, or its folders `seed-<n>`, in the order of the seeds; copies of runs
        with other names are ignored."""
        if (path / "recipe.json").exists():
            return [cls(path)]
        names = {file.parent.name.removeprefix("seed-") for file in path.glob("seed-*/recipe.json")}
        return [cls(path / f"seed-{number}") for number in sorted(filter(str.isdecimal, names), key=int)]

    @property
    def backbone(self) -> Path:
        return self.path / "backbone"

    def step(self, name: str) -> Path:
        return self.path / "steps" / name

    def weights(self, step: str) -> Path:
        return self.step(step) / WEIGHTS

    def finished(self, step: str, file: str = "scores.json") -> bool:
        return (self.step(step) / file).exists()

    def begun(self, step: str) -> bool:
        """Whether a step is trained or has a checkpoint, so that its initial weights are not needed again."""
        return any(self.finished(step, file) for file in (WEIGHTS, "checkpoint.safetensors"))

    def done(self, recipe: Recipe, step: str) -> bool:
        """Whether a step is complete; a step without evaluation ends with its weights."""
        return self.finished(step) if recipe.steps[step].evaluate else self.trained(recipe, step)

    def trained(self, recipe: Recipe, step: str) -> bool:
        """Whether the weights of a step are there."""
        return self.finished(recipe.trained_by(step), WEIGHTS)

    def seeds(self) -> dict[int, RunFolder]:
        """This run and its sibling runs, by seed. Only runs that differ in nothing but the seed, with equal data, are
        included. Others are logged."""
        identity, data = self.identity(), self.fingerprint()
        runs = {identity["seed"]: self}
        for beside in RunFolder.found_in(self.path.parent):
            try:
                tables, changes = beside.identity(), ["it used different data"] * (beside.fingerprint() != data)
            except MmgenError as error:  # damage to another run must not prevent this run's table
                log.warning("%s; this run is left out of the results over seeds", error)
                continue
            seed = tables["seed"]
            if beside.path.name != f"seed-{seed}" or seed in runs:  # a copy of a run, or this run
                continue
            theirs, ours = _without_new_steps(tables, identity), _without_new_steps(identity, tables)
            theirs["seed"] = ours["seed"] = theirs["probes"] = ours["probes"] = None
            if changes := [*differences(theirs, ours), *changes]:
                message = "%s: not the same run with another seed (%s); left out of the results over seeds"
                log.warning(message, beside.path, changes[0])
                continue
            runs[seed] = beside
        return dict(sorted(runs.items()))

    def fingerprint(self) -> str | None:
        """The fingerprint of the data; None before it is written."""
        path = self.path / "data.json"
        return read_table(path, fingerprint=str)["fingerprint"] if path.exists() else None

    def identity(self) -> dict[str, Any]:
        """`Recipe.identity` of the run's recipe, with paths as seen from here; of parts that are not installed, the
        saved tables. Raises RunError."""
        try:
            return with_real_paths(self.recipe(installed())).identity()
        except RecipeError:
            saved = read_table(self.path / "recipe.json")
            return {name: table for name, table in saved.items() if name not in (*BESIDE, STARTED)}

    def recipe(self, registry: Registry) -> Recipe:
        """The recipe of the run. Its paths are relative to the folder in which the run was started, which is saved as a
        path from the run's folder, since both may move. Raises RunError, RecipeError."""
        path = self.path / "recipe.json"
        if not path.exists():
            raise RunError(
                f"{self.path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)"
            )
        saved = read_table(path)
        started = saved.pop(STARTED, None)  # which an export has not
        base = Path(os.path.relpath(os.path.realpath(self.path / started))) if started else Path()
        return from_values(saved, registry, str(path), base)

    def claim(self, recipe: Recipe, datasets: Datasets, fresh: bool) -> None:
        """Reserve the folder for this recipe. Raises RunError, with the differences, if it belongs to a different
        recipe. A recipe with more steps is not different, since no step depends on later ones. If texts or scores are
        `outdated`, the folder keeps its recipe until `retire` deletes them."""
        for path in self.path.iterdir() if fresh and self.path.exists() else ():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != LOCK:  # which this run holds
                path.unlink()
        self._delete_leftovers()
        fingerprint = datasets.fingerprint()
        if any(self.path.glob("steps/*/*")):  # a run that failed before any training reserves nothing
            before, now = _training_tables(self.identity()), _training_tables(with_real_paths(recipe).identity())
            changes = differences(before, _without_new_steps(now, before))
            if self.fingerprint() not in (None, fingerprint):
                changes.append("the data set's examples have changed")
            if changes:
                advice = "use --fresh to start over, or choose another name. Differences:"
                lines = [f"{self.path} contains a run of a different recipe; {advice}", *changes]
                raise RunError("\n  ".join(lines))
        write_json(self.path / "data.json", {"fingerprint": fingerprint, **datasets.main.describe()})
        if not self.outdated(recipe):
            self._write_recipe(recipe)

    def _write_recipe(self, recipe: Recipe) -> None:
        """`recipe.json`, with the keys that the identity leaves out (`BESIDE`). One that says the same stays, since its
        paths may be written otherwise."""
        path, started = self.path / "recipe.json", os.path.relpath(os.path.realpath("."), os.path.realpath(self.path))
        values = recipe.model_dump(mode="json", include={*BESIDE})
        beside = {key: value for key, value in values.items() if value}
        if path.exists():
            saved = read_table(path)
            same = all(saved.get(key) == beside.get(key) for key in BESIDE)
            if same and self.identity() == with_real_paths(recipe).identity():
                return
        write_json(path, {**beside, **recipe.identity(), STARTED: started})

    def outdated(self, recipe: Recipe) -> dict[str, list[str]]:
        """Step -> its files that another decoding or other metrics than the run's have made outdated. Weights depend on
        neither."""
        if not any(self.path.glob("steps/*/*")):
            return {}
        saved, current = self.identity(), with_real_paths(recipe).identity()
        files: dict[str, list[str]] = {}
        for name, step in recipe.steps.items():
            decoded = name in saved["steps"] and _decoding(saved, name) != _decoding(current, name)
            if step.evaluate and (decoded or saved["metrics"] != current["metrics"]):
                files[name] = ["scores.json", "generations.jsonl"] if decoded else ["scores.json"]
        return files

    def retire(self, recipe: Recipe) -> str:
        """Delete outdated texts and scores, and then save this recipe: a kill in between leaves the old recipe with
        fewer files, never the new recipe with old texts or scores. Returns a message, or "" if there were none."""
        if not (outdated := self.outdated(recipe)):
            return ""
        paths = [self.step(name) / file for name, files in outdated.items() for file in files]
        existing = [path for path in paths if path.exists()]
        for path in [*existing, self.path / "table.md", self.path / "report.html", self.path.parent / "table.md"]:
            path.unlink(missing_ok=True)
        texts = any(len(files) > 1 for files in outdated.values())
        if texts:
            shutil.rmtree(self.path / "probes", ignore_errors=True)  # some read texts
        self._write_recipe(recipe)
        changed = (
            "decoding has changed: texts (and probes, by `mmgen probe`) are made"
            if texts
            else "metrics have changed: scores are computed"
        )
        return f"{changed} again, weights stay" if existing else ""

    def note_environment(self, recipe: Recipe) -> None:
        """Save the environment of this session, before any training."""
        write_json(self.path / "environment.json", environment(recipe))

    def _delete_leftovers(self) -> None:
        """Delete what a killed run left behind: partial files, and checkpoints of trained steps."""
        clear_partials(self.path)
        for weights in self.path.glob(f"steps/*/{WEIGHTS}"):
            for spent in ("checkpoint.safetensors", "best.safetensors"):
                weights.with_name(spent).unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this run. Raises RunError if another run holds the lock."""

        def refuse() -> None:
            raise RunError(f"{self.path}: another run is writing in this folder; wait for its end, or stop it")

        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked(self.path / LOCK, refuse))
            except OSError as error:
                raise RunError(
                    f"{self.path}: cannot be written: {error.strerror}; choose another folder with --set output=..."
                ) from None
            for path in self.path.glob(f"steps/*/{LOCK}"):  # a child may still train for a run that was killed
                with self.step_locked(path.parent.name):
                    pass
            yield

    @contextlib.contextmanager
    def step_locked(self, step: str) -> Iterator[None]:
        """Lock a step for a child of a run, which may outlive the run by an update. Waits for another process."""
        path = self.step(step) / LOCK
        path.parent.mkdir(parents=True, exist_ok=True)
        warning = "step '%s': waiting for another process, which trains it for a run that was stopped"
        with locked(path, lambda: log.warning(warning, step)):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)


def _training_tables(identity: dict[str, Any]) -> dict[str, Any]:
    """The tables that weights depend on."""
    steps = {name: {**step, "decoding": None} for name, step in identity["steps"].items()}
    return {name: value for name, value in {**identity, "steps": steps}.items() if name not in NOT_TRAINED}


def _decoding(tables: dict[str, Any], step: str) -> Any:
    return tables["steps"][step].get("decoding") or tables["decoding"]


def _without_new_steps(identity: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """The tables of a recipe without the steps that an earlier recipe lacks."""
    return {**identity, "steps": {name: step for name, step in identity["steps"].items() if name in earlier["steps"]}}
