"""The journal of a part: the state of each of its steps, in one JSON file that outlives runs.

A step is `begun`, then `done`, `failed` (it ended with an error or a signal) or `stopped` (its time was over). The
next run repeats all steps that are not done. Earlier results are kept under `earlier`."""

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
        """Save the step's latest result. A finished result is never lost."""
        before = self.steps.get(step)
        if before and before["state"] != BEGUN:
            self.earlier.append({"step": step, **before})
        self.steps[step] = result
        self._write()

    def forget(self) -> None:
        """Mark every step to be run again; the results move to `earlier`."""
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
