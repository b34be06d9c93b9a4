"""The journal of a part: what became of each of its steps, in one JSON file that outlives runs.

A step is `begun`, then `done`, `failed` (it ended by an error or a signal) or `stopped` (its time was over). All but
those that are done are run again by the next run. What was there before is kept under `earlier`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DONE, FAILED, STOPPED, BEGUN = "done", "failed", "stopped", "begun"
Result = dict[str, Any]  # state, command, commit, seconds, and what was found under "figures"


class Journal:
    """The steps of a part by name, in the order they were first run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.steps: dict[str, Result] = {}
        self.earlier: list[Result] = []
        try:
            saved = json.loads(path.read_text(encoding="utf-8"))
            self.steps, self.earlier = dict(saved["steps"]), list(saved["earlier"])
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError):  # kept for a person to look at
            path.replace(path.with_suffix(".damaged"))

    def done(self, step: str) -> bool:
        return self.steps.get(step, {}).get("state") == DONE

    def keep(self, step: str, result: Result) -> None:
        """The step's latest result. One that was finished before is not lost."""
        before = self.steps.get(step)
        if before and before["state"] != BEGUN:
            self.earlier.append({"step": step, **before})
        self.steps[step] = result
        self._write()

    def forget(self) -> None:
        """Every step is to be run again; the results go to `earlier`."""
        self.earlier += [{"step": step, **result} for step, result in self.steps.items()]
        self.steps = {}
        self._write()

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".partial")
        with partial.open("w", encoding="utf-8") as file:
            json.dump({"steps": self.steps, "earlier": self.earlier}, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.path)
