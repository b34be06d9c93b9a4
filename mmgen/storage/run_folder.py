"""A run's folder: names of its files, the recipe that owns it, its lock, times, sessions, other seeds, leftovers.

runs/<name>/<profile>/seed-<n>/
    recipe.json  environment.json  data.json  inputs.json  labels.json  backbone/
    examples.jsonl  examples/  references.json
    steps/<step>/{weights.safetensors, generations.jsonl, scores.json, log.jsonl}
    times.json  table.md  report.html  curves/  probes/<probe>/
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..data.datasets import Datasets
from ..errors import PluginError, RecipeError, RunError
from ..features.random_features import random_features
from ..files import clear_partials, locked, read_json, read_table, write_json
from ..recipe.load import from_json
from ..recipe.paths import with_real_paths
from ..recipe.tables import BESIDE, Recipe
from ..registry import Registry, installed
from . import recipe_file
from .environment import environment, providers
from .exports import is_export

log = logging.getLogger("mmgen")


LOCK = ".lock"
NOT_TRAINED = ("decoding", "metrics", "probes")  # tables that weights do not depend on


class RunFolder:
    """The paths of a run, and the files that describe it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"<run in {self.path}>"

    @classmethod
    def of(cls, recipe: Recipe) -> RunFolder:
        return cls(Path(recipe.output) / recipe.name / (recipe.profile or "default") / f"seed-{recipe.seed}")

    def step(self, name: str) -> Path:
        return self.path / "steps" / name

    def finished(self, step: str, file: str = "scores.json") -> bool:
        return (self.step(step) / file).exists()

    def begun(self, step: str) -> bool:
        """Whether a step is trained or has a checkpoint, so that its initial weights are not needed again."""
        return any(self.finished(step, file) for file in ("weights.safetensors", "checkpoint.safetensors"))

    def done(self, recipe: Recipe, step: str) -> bool:
        """Whether a step is complete; a step without evaluation ends with its weights."""
        return self.finished(step) if recipe.steps[step].evaluate else self.trained(recipe, step)

    def trained(self, recipe: Recipe, step: str) -> bool:
        """Whether the weights of a step are there."""
        return self.finished(recipe.trained_by(step), "weights.safetensors")

    @property
    def backbone(self) -> Path:
        return self.path / "backbone"

    @classmethod
    def found_in(cls, path: Path) -> list[RunFolder]:
        """The runs at a path: the folder itself, or its folders `seed-<n>`, in the order of the seeds; copies of runs
        with other names are ignored."""
        if (path / "recipe.json").exists():
            return [cls(path)]
        seeds = {file.parent: file.parent.name.removeprefix("seed-") for file in path.glob("seed-*/recipe.json")}
        folders = sorted(
            (folder for folder in seeds if seeds[folder].isdecimal()), key=lambda folder: int(seeds[folder])
        )
        return [cls(folder) for folder in folders]

    def seeds(self) -> dict[int, RunFolder]:
        """This run and its sibling runs, by seed. Only runs that differ in nothing but the seed, with equal data, are
        included. Others are logged."""
        identity, data = self.identity(), self.fingerprint()
        runs = {identity["seed"]: self}
        for path in sorted(self.path.parent.glob("seed-*/recipe.json")):
            beside = RunFolder(path.parent)
            try:
                recipe, mismatch = beside.identity(), "it used different data" * (beside.fingerprint() != data)
            except RunError as error:  # damage to another run must not prevent this run's table
                log.warning("%s; this run is left out of the results over seeds", error)
                continue
            if path.parent.name != f"seed-{recipe['seed']}" or recipe["seed"] in runs:  # a copy of a run, or this run
                continue
            theirs, ours = _without_new_steps(recipe, identity), _without_new_steps(identity, recipe)
            changes = differences({**theirs, "seed": None, "probes": None}, {**ours, "seed": None, "probes": None})
            if changes or mismatch:
                what = f"{changes[0]}{' and more' * (len(changes) > 1)}" if changes else mismatch
                log.warning(
                    "%s: not the same run with another seed (%s); left out of the results over seeds",
                    beside.path,
                    what,
                )
                continue
            runs[recipe["seed"]] = beside
        return dict(sorted(runs.items()))

    def fingerprint(self) -> str | None:
        """The fingerprint of the data; None before it is written."""
        path = self.path / "data.json"
        return read_table(path, fingerprint=str)["fingerprint"] if path.exists() else None

    def identity(self) -> dict[str, Any]:
        """`Recipe.identity` of the run's recipe, with all keys of this version and with paths as seen from here; if the
        recipe cannot be loaded because a plugin is missing, the saved tables. Raises RunError."""
        saved = read_table(self.path / "recipe.json", seed=int)
        try:
            return with_real_paths(self.recipe(installed())).identity()
        except (RecipeError, PluginError):
            return {name: table for name, table in saved.items() if name not in (*BESIDE, recipe_file.STARTED)}

    def recipe(self, registry: Registry, probes: bool = False) -> Recipe:
        """The recipe of the run. Without `probes`, probes whose plugin is missing are left out, since nothing else
        needs them. Raises RunError, RecipeError."""
        path = self.path / "recipe.json"
        if not path.exists():
            if (self.path / "config.json").exists() and is_export(self.path):
                raise RunError(
                    f"{self.path}: an export, which has no data; `mmgen predict --as` takes it with --data RECIPE; for "
                    "anything else name a run folder"
                )
            raise recipe_file.missing(self.path)
        saved = read_json(path)
        base = Path()
        if isinstance(saved, dict):
            base = recipe_file.base(self.path, saved)
            saved = saved if probes else recipe_file.without_lost_probes(saved, registry)
        return from_json(json.dumps(saved), registry, str(path), base)

    def claim(self, recipe: Recipe, datasets: Datasets, fresh: bool) -> None:
        """Reserve the folder for this recipe. Raises RunError, with the differences, if it belongs to a different
        recipe. A recipe with more steps is not different, since no step depends on later ones. If texts or scores are
        `outdated`, the folder keeps its recipe until `retire` deletes them."""
        if fresh and self.path.exists():
            self._delete_all()
        self._delete_leftovers()
        fingerprint = datasets.fingerprint()
        if any(self.path.glob("steps/*/*")):  # a run that failed before any training reserves nothing
            before, now = _training_tables(self.identity()), _training_tables(with_real_paths(recipe).identity())
            changes = differences(before, _without_new_steps(now, before))
            saved = (
                read_table(self.path / "data.json", fingerprint=str)["fingerprint"]
                if (self.path / "data.json").exists()
                else fingerprint
            )
            if saved != fingerprint:
                changes.append("the data set's examples have changed")
            if changes:
                raise RunError(
                    "\n".join(
                        [
                            f"{self.path} contains a run of a different recipe; use --fresh to start over, or choose "
                            "another name. Differences:",
                            *(f"  {change}" for change in changes),
                        ]
                    )
                )
        write_json(self.path / "data.json", {"fingerprint": fingerprint, **datasets.main.describe()})
        if not self.outdated(recipe):
            self._write_recipe(recipe)

    def _write_recipe(self, recipe: Recipe) -> None:
        """`recipe.json`, with the keys that the identity leaves out (`BESIDE`)."""
        path = self.path / "recipe.json"
        saved = read_table(path) if path.exists() else {}
        beside = {key: value for key in BESIDE if (value := getattr(recipe, key))}
        table = beside | recipe.identity()
        if saved.pop(recipe_file.STARTED, None) and {key: saved[key] for key in BESIDE if key in saved} == beside:
            saved = table if self.identity() == with_real_paths(recipe).identity() else saved  # paths may differ
        if saved != table:
            write_json(path, table | {recipe_file.STARTED: recipe_file.started_in(self.path)})

    def outdated(self, recipe: Recipe) -> tuple[str, ...]:
        """Which of "decoding" and "metrics" differ from those of the run's texts and scores. Weights depend on
        neither."""
        if not any(self.path.glob("steps/*/*")):
            return ()
        saved, current = self.identity(), with_real_paths(recipe).identity()
        metrics = saved.get("metrics") != current["metrics"]
        return ("decoding",) * bool(_decoded_anew(saved, current)) + ("metrics",) * metrics

    def outdated_steps(self, recipe: Recipe) -> list[str]:
        """The steps whose texts or scores are outdated."""
        tables = self.outdated(recipe)
        steps = [name for name, step in recipe.steps.items() if step.evaluate]
        decoded_anew = _decoded_anew(self.identity(), with_real_paths(recipe).identity()) if tables else []
        return steps if "metrics" in tables else [name for name in steps if name in decoded_anew]

    def retire(self, recipe: Recipe) -> str:
        """Delete results of outdated decoding or metrics, and then save this recipe: a kill in between leaves the old
        recipe with fewer files, never the new recipe with old texts or scores. Returns a message, or "" if there were
        no results."""
        tables = self.outdated(recipe)
        rewritten = _decoded_anew(self.identity(), with_real_paths(recipe).identity()) if tables else []
        spent = [self.step(step) / file for step in rewritten for file in ("scores.json", "generations.jsonl")]
        spent += self.path.glob("steps/*/scores.json") if "metrics" in tables else []
        spent = [path for path in spent if path.exists()]
        shown = [self.path / "table.md", self.path / "report.html", self.path.parent / "table.md"]
        for path in [*spent, *shown]:
            path.unlink(missing_ok=True)
        probes = "decoding" in tables and (self.path / "probes").exists()  # some probes read texts
        if probes:
            shutil.rmtree(self.path / "probes")
        self._write_recipe(recipe)
        if not spent:
            return ""
        consequence = "texts are generated again" if "decoding" in tables else "scores are computed again"
        return f"{' and '.join(tables)} {'have' if len(tables) > 1 or tables == ('metrics',) else 'has'} changed: " + (
            f"{consequence}, weights stay" + "; probes/ is deleted; run `mmgen probe` again" * probes
        )

    def note_environment(self, recipe: Recipe) -> None:
        """Save the environment of this session, before any training."""
        write_json(self.path / "environment.json", self._environments_of_sessions(recipe))

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the seconds spent on a step to `times.json`; a kill adds nothing."""
        began = time.monotonic()
        yield
        self.spent(step, time.monotonic() - began)

    def spent(self, step: str, more: float) -> None:
        """Adds seconds to those of a step in `times.json`."""
        seconds = self.times()
        write_json(self.path / "times.json", {**seconds, step: round(seconds.get(step, 0) + more, 1)})

    def times(self) -> dict[str, float]:
        """Seconds per step, over all sessions that were not killed."""
        path = self.path / "times.json"
        try:
            times = read_table(path) if path.exists() else {}
            return read_table(path, **dict.fromkeys(times, (int, float))) if times else {}
        except RunError as error:
            raise RunError(f"{error}; delete the file, which only records how long steps took") from None

    def _delete_all(self) -> None:
        """Delete everything except the lock, which this run holds."""
        try:
            for path in self.path.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name != LOCK:
                    path.unlink()
        except OSError as error:
            raise RunError(f"{self.path}: cannot be emptied: {error}") from None

    def _delete_leftovers(self) -> None:
        """Delete what a killed run left behind: partial files, and checkpoints of trained steps."""
        clear_partials(self.path)
        for weights in self.path.glob("steps/*/weights.safetensors"):
            for spent in ("checkpoint.safetensors", "best.safetensors"):
                weights.with_name(spent).unlink(missing_ok=True)

    def _environments_of_sessions(self, recipe: Recipe) -> dict[str, Any]:
        """The environment of this session, and those of earlier sessions that differ in something that can change the
        result."""
        random = random_features(recipe.inputs)
        now = environment(providers(recipe)) | ({"random features": random} if random else {})
        path = self.path / "environment.json"
        earlier = []
        if path.exists() and any(self.path.glob("steps/*/*")):
            before = read_table(path, **{"earlier sessions": list})
            earlier = before.pop("earlier sessions")
            if any(before.get(name) != now[name] for name in now if name not in ("command", "written")):
                earlier.append(before)
        return {**now, "earlier sessions": earlier}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder for this run. Raises RunError, which names the process that holds the lock."""

        def refuse(holder: str) -> None:
            who = f" ({holder})" if holder else ""
            raise RunError(f"{self.path}: another run{who} is writing in this folder; wait for its end, or stop it")

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
        path, waited = self.step(step) / LOCK, False

        def wait(holder: str) -> None:
            nonlocal waited
            if not waited:
                log.warning("step '%s': waiting for %s, which trains it for a run that was stopped", step, holder)
            waited = True
            time.sleep(0.1)

        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path, wait):
            try:
                yield
            finally:
                path.unlink(missing_ok=True)


def _training_tables(identity: dict[str, Any]) -> dict[str, Any]:
    """The tables that weights depend on."""
    steps = {name: {**step, "decoding": None} for name, step in identity["steps"].items()}
    return {name: value for name, value in {**identity, "steps": steps}.items() if name not in NOT_TRAINED}


def _decoded_anew(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The steps whose texts are searched otherwise in a recipe's tables than in earlier ones."""

    def options(tables: dict[str, Any], step: str) -> Any:
        return tables["steps"][step].get("decoding") or tables.get("decoding")

    return [step for step in before["steps"] if step in now["steps"] and options(before, step) != options(now, step)]


def _without_new_steps(identity: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """The tables of a recipe without the steps that an earlier recipe lacks."""
    return {**identity, "steps": {name: step for name, step in identity["steps"].items() if name in earlier["steps"]}}


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """The differences between two tables, a line each: path: before -> now."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key in dict.fromkeys([*before, *now])
            for line in differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if before == now else [f"{path}: {json.dumps(before)} -> {json.dumps(now)}"]
