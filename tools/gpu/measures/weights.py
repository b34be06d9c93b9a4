"""Compare two finished runs: differences of weights and logs, and how far the weights have moved."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from safetensors.torch import load_file

from .synthetic import tell

CLOSE = 2e-5
UNTAUGHT = "key.bias"  # the gradient of keys' biases is rounding alone, which Adam blows up


def apart(left: Path, right: Path) -> dict:
    """The largest differences over all steps that both runs have finished."""
    figures = {"weights": 0.0, "loss": 0.0, "grad_norm": 0.0, "steps": 0}
    for path in sorted(left.glob("steps/*/weights.safetensors")):
        ours, theirs = load_file(path), load_file(right / path.relative_to(left))
        for name in ours:
            if not name.endswith(UNTAUGHT):
                figures["weights"] = max(figures["weights"], (ours[name] - theirs[name]).abs().max().item())
        for name in ("loss", "grad_norm"):
            pairs = zip(_log(path.parent, name), _log(right / path.parent.relative_to(left), name), strict=True)
            figures[name] = max([figures[name], *(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)])
        figures["steps"] += 1
    return figures


def _log(step: Path, name: str) -> list[float]:
    return [json.loads(line)[name] for line in (step / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def processes(run: Path) -> int:
    return json.loads((run / "environment.json").read_text(encoding="utf-8")).get("processes", 1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs=2)
    first, second = parser.parse_args().runs
    figures = apart(first, second) | {"processes": [processes(first), processes(second)]}
    tell(figures)
    if not figures["steps"] or max(figures[name] for name in ("weights", "loss", "grad_norm")) > CLOSE:
        raise SystemExit(f"not the same: {figures}")
