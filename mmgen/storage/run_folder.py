"""A run's folder: what is in it, whose it is, and that only one process writes it.

runs/<name>/<profile>/seed-<n>/
    recipe.json  environment.json  data.json  inputs.json  labels.json  backbone/
    examples.jsonl  examples/
    steps/<step>/{weights.safetensors, generations.jsonl, scores.json, log.jsonl, start.json}
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
from ..files import clear_partials, locked, read_json, read_table, sync, write_json
from ..recipe.load import from_json
from ..recipe.paths import located
from ..recipe.tables import Recipe
from ..registry import Registry, installed
from . import kept_recipe, kept_start
from .environment import environment

log = logging.getLogger("mmgen")


LOCK = ".lock"
NOT_LEARNT = ("decoding", "metrics", "probes")  # tables that weights do not depend on


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

    @classmethod
    def found_in(cls, path: Path) -> list[RunFolder]:
        """The runs that a path stands for: itself, or those whose seeds it holds, in their order; a copy beside them is
        none."""
        if (path / "recipe.json").exists():
            return [cls(path)]
        numbers = {each.parent: each.parent.name.removeprefix("seed-") for each in path.glob("seed-*/recipe.json")}
        return [
            cls(each)
            for each in sorted(
                (each for each in numbers if numbers[each].isdecimal()), key=lambda each: int(numbers[each])
            )
        ]

    def seeds(self) -> dict[int, RunFolder]:
        """This run and the runs beside it, by their seed. Only runs that differ in nothing but the seed, with equal
        data and published weights, are among them. A line names the others."""
        own, data = self.identity(), self.fingerprint()
        found = {own["seed"]: self}
        for path in sorted(self.path.parent.glob("seed-*/recipe.json")):
            beside = RunFolder(path.parent)
            try:
                recipe, other = beside.identity(), "its data are others" * (beside.fingerprint() != data)
                other = other or kept_start.unlike(beside.path, self.path)
            except RunError as error:  # somebody else's damage is no reason to lose our own table
                log.warning("%s; it is left out of what is over all seeds", error)
                continue
            if path.parent.name != f"seed-{recipe['seed']}" or recipe["seed"] in found:  # a copy of one, or this one
                continue
            others = differences({**recipe, "seed": None, "probes": None}, {**own, "seed": None, "probes": None})
            if others or other:
                what = f"{others[0]}{' and more' * (len(others) > 1)}" if others else other
                log.warning(
                    "%s: not the same run with another seed (%s); it is left out of what is over all seeds",
                    beside.path,
                    what,
                )
                continue
            found[recipe["seed"]] = beside
        return dict(sorted(found.items()))

    def fingerprint(self) -> str | None:
        """Of its data; None where it has not been written."""
        path = self.path / "data.json"
        return read_table(path, fingerprint=str)["fingerprint"] if path.exists() else None

    def identity(self) -> dict[str, Any]:
        """What `Recipe.identity` is of the recipe that was run, with every key there is today and every path as it
        is found here; as it was written where it cannot be read any more, its plugin being gone. Raises RunError."""
        saved = read_table(self.path / "recipe.json", seed=int)
        try:
            return located(self.recipe(installed())).identity()
        except (RecipeError, PluginError):
            return {name: table for name, table in saved.items() if name not in ("description", kept_recipe.STARTED)}

    def recipe(self, registry: Registry, probes: bool = False) -> Recipe:
        """What was run. Without `probes`, those whose plugin is gone are left out: they only look, and all else can do
        without them. Raises RunError, RecipeError."""
        path = self.path / "recipe.json"
        if not path.exists():
            raise RunError(f"{self.path}: no recipe.json there; give a run's folder (runs/<name>/<profile>/seed-<n>)")
        saved = read_json(path)
        base = Path()
        if isinstance(saved, dict):
            base = kept_recipe.base(self.path, saved)
            saved = saved if probes else kept_recipe.without_lost_probes(saved, registry)
        return from_json(json.dumps(saved), registry, str(path), base)

    def claim(self, recipe: Recipe, datasets: Datasets, fresh: bool) -> None:
        """Make the folder this recipe's. Raises RunError when it is another's, and says what differs. Where texts or
        scores are `outdated`, the folder keeps its recipe until `retire` takes them away."""
        if fresh and self.path.exists():
            self._empty()
        self._clear()
        fingerprint = datasets.fingerprint()
        if any(self.path.glob("steps/*/*")):  # a run that failed before it learnt anything claims nothing
            changes = differences(_learnt(self.identity()), _learnt(located(recipe).identity()))
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
                            f"{self.path} holds a run of another recipe; use --fresh to do it anew, or another name:",
                            *(f"  {change}" for change in changes),
                        ]
                    )
                )
        write_json(self.path / "data.json", {"fingerprint": fingerprint, **datasets.main.describe()})
        if not self.outdated(recipe):
            self._keep(recipe)

    def _keep(self, recipe: Recipe) -> None:
        """`recipe.json`, with the description for the report."""
        path = self.path / "recipe.json"
        saved = read_table(path) if path.exists() else {}
        kept = ({"description": recipe.description} if recipe.description else {}) | recipe.identity()
        if saved.pop(kept_recipe.STARTED, None) and saved.get("description", "") == recipe.description:
            saved = kept if self.identity() == located(recipe).identity() else saved  # paths may be written otherwise
        if saved != kept:
            write_json(path, kept | {kept_recipe.STARTED: kept_recipe.started_in(self.path)})

    def outdated(self, recipe: Recipe) -> tuple[str, ...]:
        """Which of the tables "decoding" and "metrics" differ from those that the run's texts and scores were made
        with. Weights depend on neither."""
        if not any(self.path.glob("steps/*/*")):
            return ()
        saved, own = self.identity(), located(recipe).identity()
        return tuple(name for name in ("decoding", "metrics") if saved.get(name) != own[name])

    def retire(self, recipe: Recipe) -> str:
        """Delete what is made with other decoding or metrics, and then make this recipe the folder's: a kill in between
        leaves the old recipe with fewer files, never the new one with old texts or scores. Returns what a person should
        read of it, "" where nothing had been made yet."""
        tables = self.outdated(recipe)
        spent = [*self.path.glob("steps/*/scores.json"), *self.path.glob("steps/*/decodings/*/scores.json")]
        if "metrics" not in tables:  # what was written with a decoding of its own is not concerned
            spent = [path for path in spent if path.parent.parent.name == "steps"]
        if "decoding" in tables:
            spent += self.path.glob("steps/*/generations.jsonl")
        shown = [self.path / "table.md", self.path / "report.html", self.path.parent / "table.md"]
        for path in [*spent, *shown]:
            path.unlink(missing_ok=True)
        for folder in {path.parent for path in spent}:
            sync(folder)
        probes = "decoding" in tables and (self.path / "probes").exists()  # some look at what was written
        if probes:
            shutil.rmtree(self.path / "probes")
        self._keep(recipe)
        if not spent:
            return ""
        anew = "texts are written anew" if "decoding" in tables else "scores are made anew"
        return f"{' and '.join(tables)} {'have' if len(tables) > 1 or tables == ('metrics',) else 'has'} changed: " + (
            f"{anew}, weights stay" + "; probes/ is deleted, `mmgen probe` looks again" * probes
        )

    def note_environment(self, recipe: Recipe) -> None:
        """What this sitting computes with; called once that is settled, before anything is learnt."""
        write_json(self.path / "environment.json", self._environments(recipe))

    @contextlib.contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Adds the seconds that work on a step takes to `times.json`; of a kill, nothing is added."""
        began = time.monotonic()
        yield
        self.spent(step, time.monotonic() - began)

    def spent(self, step: str, more: float) -> None:
        """Adds seconds to those of a step in `times.json`."""
        seconds = self.times()
        write_json(self.path / "times.json", {**seconds, step: round(seconds.get(step, 0) + more, 1)})

    def times(self) -> dict[str, float]:
        """Seconds a step took, in the sittings that came to their end."""
        path = self.path / "times.json"
        try:
            times = read_table(path) if path.exists() else {}
            return read_table(path, **dict.fromkeys(times, (int, float))) if times else {}
        except RunError as error:
            raise RunError(f"{error}; delete it: it only says how long steps took") from None

    def _empty(self) -> None:
        """Everything goes but the lock, which this very run holds."""
        try:
            for path in self.path.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name != LOCK:
                    path.unlink()
        except OSError as error:
            raise RunError(f"{self.path}: cannot be emptied: {error}") from None

    def _clear(self) -> None:
        """What a run that was killed left behind: half-written files, and checkpoints of steps that are learnt."""
        clear_partials(self.path)
        for weights in self.path.glob("steps/*/weights.safetensors"):
            for spent in ("checkpoint.safetensors", "best.safetensors", kept_start.WEIGHTS):
                weights.with_name(spent).unlink(missing_ok=True)

    def _environments(self, recipe: Recipe) -> dict[str, Any]:
        """This sitting's environment, and those of earlier sittings in which something else could have changed the
        result."""
        used = {type(config) for config in recipe.parts()}
        providers = sorted({part.source.distribution for part in installed().parts if part.config in used})
        now, path = environment(providers), self.path / "environment.json"
        earlier = []
        if path.exists() and any(self.path.glob("steps/*/*")):
            before = read_table(path)
            earlier = before.pop("earlier sittings", [])
            earlier = earlier if isinstance(earlier, list) else []
            if any(before.get(name) != now[name] for name in now if name not in ("command", "written")):
                earlier.append(before)
        return {**now, "earlier sittings": earlier}

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Only one run writes here. Raises RunError, which says who does."""

        def refuse(holder: str) -> None:
            who = f" ({holder})" if holder else ""
            raise RunError(f"{self.path}: another run{who} is writing here; wait for it, or stop it")

        with contextlib.ExitStack() as held:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                held.enter_context(locked(self.path / LOCK, refuse))
            except OSError as error:
                raise RunError(
                    f"{self.path}: cannot be written: {error.strerror}; give another folder with --set output=..."
                ) from None
            yield


def _learnt(identity: dict[str, Any]) -> dict[str, Any]:
    """What weights depend on."""
    return {name: value for name, value in identity.items() if name not in NOT_LEARNT}


def differences(before: Any, now: Any, path: str = "") -> list[str]:
    """What differs between two tables, a line each: path: then -> now."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key in dict.fromkeys([*before, *now])
            for line in differences(before.get(key), now.get(key), f"{path}.{key}".lstrip("."))
        ]
    return [] if before == now else [f"{path}: {json.dumps(before)} -> {json.dumps(now)}"]
