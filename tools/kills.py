"""Kill a run again and again, at any moment, and compare its results with those of an undisturbed run.

    python -m tools.kills --kills 20

A small run with all features (extraction from pictures, two steps, one with two losses on two data sets, checkpoints,
generation, scoring, the table) is killed with SIGKILL and started again until it ends; then the next run, until there
were enough kills. Every second kill comes at a random moment of the run's duration; the others are aimed, since short
phases would hardly be hit: the phase begins, and the kill follows after a random time between 0.1 ms and 0.1 s.
Weights, logs, texts, scores and features are compared to the bit, and no partial file may be left.

    python -m tools.kills --kills 6 --large

The small run's checkpoints take milliseconds. With `--large` the encoder has 4 layers of width 768 (a checkpoint of
over 300 MB), the run is short, and every second kill is aimed at the writing of a checkpoint."""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

RECIPE = """\
name = "kills"
[backbone]
type = "bert"
num_hidden_layers = 2
hidden_size = 64
num_attention_heads = 4
[inputs.image]
type = "regions"
[inputs.image.extractor]
type = "roi"
model = "test_resnet"
image_size = 64
batch_size = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[training]
batch_size = 16
micro_batch_size = 6
epochs = 3
learning_rate = 1e-3
checkpoint_every = 1
keep = "best"
num_workers = 1
[objectives.words]
type = "masked_words"
[steps.caption]
inputs = ["caption"]
train = ["backbone"]
objectives = ["generator", "words"]
data = [
    { type = "scenes", train_size = 40, val_size = 4, test_size = 8 },
    { type = "scene_stories", train_size = 12, val_size = 2, share = 0.5, objectives = ["words"] },
]
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
start = "caption"
[data]
type = "scenes"
train_size = 40
val_size = 4
test_size = 8
[decoding]
num_beams = 2
[metrics.meaning]
type = "discovery"
"""
LARGE = {
    "num_hidden_layers = 2": "num_hidden_layers = 4",
    "hidden_size = 64": "hidden_size = 768",
    "num_attention_heads = 4": "num_attention_heads = 12",
    "epochs = 3": "epochs = 1",
    "train_size = 40": "train_size = 16",
    'checkpoint_every = 1\nkeep = "best"': "checkpoint_every = 1",
}
PLACE = Path("runs/kills/default/seed-0")
STEPS = ("caption", "both")
PHASES = (
    "starting",
    "extracting",
    "putting features together",
    "learning",
    "writing a checkpoint",
    "beginning a step",
    "writing",
    "scoring",
    "drawing the report",
)


def recipe(large: bool) -> str:
    text = RECIPE
    for small, large_text in LARGE.items() if large else ():
        assert small in text, small
        text = text.replace(small, large_text)
    return text


def command() -> list[str]:
    return [sys.executable, "-m", "mmgen", "run", "kills.toml"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def phase(folder: Path) -> str:
    """The current phase of a run, from the files in its folder."""
    place = folder / PLACE
    stores = list(place.parent.glob("features/*.h5"))
    if any(place.parent.glob("features/.*.assembling")):
        return "putting features together"
    if not stores:
        return "extracting" if any(place.parent.glob("features/*.partial")) else "starting"
    if any(place.glob("steps/*/.*.safetensors.*.partial")):
        return "writing a checkpoint"
    for step in STEPS:
        files = {file.name for file in (place / "steps" / step).glob("*")}
        if "weights.safetensors" not in files:
            return "learning" if files else "beginning a step"
        if "generations.jsonl" not in files:
            return "writing"
        if "scores.json" not in files:
            return "scoring"
    return "drawing the report"


def claimed(folder: Path, process: subprocess.Popen) -> bool:
    """Whether this process has begun to work in the folder, which it records in the lock file."""
    try:
        return f"process {process.pid} " in (folder / PLACE / ".lock").read_text()
    except FileNotFoundError:
        return False


def run_and_kill(folder: Path, aim: str | None, after: float) -> str | None:
    """Start or resume the run in `folder` and kill it, `after` seconds after the start of the run or of its phase
    `aim`: the phase at the kill, or None if the run ended before."""
    process = subprocess.Popen(
        command(), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while process.poll() is None and not claimed(folder, process):
        time.sleep(0.002)
    while process.poll() is None and aim and phase(folder) != aim:
        time.sleep(0.0002)
    until = time.monotonic() + after
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.0002)
    found_phase = phase(folder)
    process.send_signal(signal.SIGKILL)
    said = process.communicate()[0]
    if process.returncode == -signal.SIGKILL:
        return found_phase
    if process.returncode:
        raise SystemExit(f"the run did not resume:\n{said}")
    return None


def whole_run(folder: Path, text: str) -> float:
    """Run a recipe without disturbance; returns the seconds from the creation of its folder to its end."""
    folder.mkdir(parents=True)
    (folder / "kills.toml").write_text(text)
    process = subprocess.Popen(command(), cwd=folder, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None and not claimed(folder, process):
        time.sleep(0.002)
    began = time.monotonic()
    if process.wait():
        raise SystemExit("the undisturbed run failed")
    return time.monotonic() - began


def differences(left: Path, right: Path) -> list[str]:
    """Files that differ between two run folders, or are in one only; files about time and place are left out."""
    ignored = {"environment.json", "times.json", ".lock", "report.html"}

    def files(folder: Path) -> dict[Path, Path]:
        return {
            path.relative_to(folder): path
            for path in (folder / PLACE.parent).rglob("*")
            if path.is_file() and path.name not in ignored
        }

    ours, theirs = files(left), files(right)
    same = {".h5": same_features}
    changed = [
        path for path in ours.keys() & theirs.keys() if not same.get(path.suffix, same_bytes)(ours[path], theirs[path])
    ]
    return sorted(map(str, [*changed, *(path for path in ours.keys() ^ theirs.keys() if path.suffix != ".lock")]))


def same_bytes(left: Path, right: Path) -> bool:
    return left.read_bytes() == right.read_bytes()


def same_features(left: Path, right: Path) -> bool:
    from mmgen.features.store import FeatureStore

    stores = FeatureStore(left), FeatureStore(right)
    return all(
        store.fingerprint == stores[0].fingerprint and list(store) == list(stores[0]) for store in stores
    ) and all(
        (a.features == b.features).all() and (a.boxes == b.boxes).all() and a.region_names == b.region_names
        for a, b in zip(*(store.records() for store in stores), strict=True)
    )


def kill(kills: int, seed: int, folder: Path, large: bool = False, say=print) -> Counter[str]:
    """Run the experiment; returns the number of kills by phase. Raises SystemExit if anything differs."""
    draw, killed, runs, text = random.Random(seed), Counter(), 0, recipe(large)
    aims = ("writing a checkpoint",) if large else PHASES[1:]
    seconds = whole_run(folder / "whole", text)
    say(f"undisturbed run: {seconds:.1f} s after its start")
    while killed.total() < kills:
        runs += 1
        place, before = folder / f"run-{runs}", killed.total()
        place.mkdir()
        (place / "kills.toml").write_text(text)
        while killed.total() < kills:
            number = killed.total()
            aim = aims[number // 2 % len(aims)] if number % 2 else None
            found_phase = run_and_kill(place, aim, 10 ** draw.uniform(-4, -1) if aim else draw.uniform(0, seconds))
            if not found_phase:
                break
            killed[found_phase] += 1
            say(f"run {runs}: killed while {found_phase}" + (f" (aimed at {aim})" if aim else ""))
        done = subprocess.run(command(), cwd=place, env=environment(), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"the run did not resume:\n{done.stdout}{done.stderr}")
        if different := differences(folder / "whole", place):
            raise SystemExit(f"run {runs} ended differently: {', '.join(different)}")
        say(f"run {runs}: ended after {killed.total() - before} kills, the same to the bit")
    return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--large", action="store_true", help="an encoder whose checkpoints have over 300 MB")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed = kill(options.kills, options.seed, Path(folder), options.large)
    print("\n| killed while | kills |\n|---|---:|")
    for name in PHASES:
        print(f"| {name} | {killed[name]} |")
    print(json.dumps({"kills": killed.total(), "seed": options.seed}))


if __name__ == "__main__":
    main()
