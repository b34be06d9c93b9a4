"""Kill commands at random moments, run them again, and compare what they leave with what undisturbed commands leave.

    python -m tools.kills [--count 40] [--seed 1] [--only run,features,export,serve]

A case kills one command up to three times with SIGKILL, then runs it to its end. Half of the kills come at a random
moment, the others before a random one of its calls that change files. A run, an extraction and an export must leave the
same files: features with equal records, others with equal bytes. A service must give the same answer on the same port.
Commands run in forks of this process, which has everything imported."""

from __future__ import annotations

import argparse
import atexit
import base64
import contextlib
import gc
import http.client
import json
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import mmgen_serve.command  # noqa: F401  a fork of the service need not import it
import torch
from click.testing import CliRunner
from PIL import Image

from mmgen.cli import main as mmgen
from mmgen.features.store import FeatureStore

RECIPE = """
name = "kills"
backbone = { type = "bert", num_hidden_layers = 1, hidden_size = 32, num_attention_heads = 2 }
generator = { type = "masked", max_tokens = 8 }
data = { type = "scenes", train_size = 6, val_size = 2, test_size = 2 }
metrics = { meaning = { type = "discovery" } }
[inputs]
image = { type = "regions", extractor = { type = "roi", model = "test_resnet", image_size = 64 } }
caption = { type = "text" }
[training]
batch_size = 8
epochs = 2
learning_rate = 1e-3
checkpoint_every = 1
keep = "best"
[steps]
caption = { inputs = ["caption"], train = ["backbone"] }
both = { inputs = ["image", "caption"], train = ["image", "backbone"], start = "caption" }
"""
COMMANDS = {  # each may read what those before it leave; {} is the folder of all
    "features": "features extract {}/pictures regions --type roi --set model=test_resnet --set weights=random",
    "run": "run {}/kills.toml",
    "export": "export {}/run/runs/kills/default/seed-0 export",
    "serve": "serve {}/export/export --port",
}
LIMIT = 120.0  # seconds; a command that takes longer hangs
CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "shutil.rmtree")  # of files; audit events
VARYING = ("environment.json", "report.html")  # they say when and where a run was made


class Killer:
    """An audit hook that kills this process before its call number `last` that changes files, if there is one."""

    def __init__(self, last: int) -> None:
        self.last, self.calls = last, 0

    def __call__(self, event: str, arguments: tuple) -> None:
        if event in CHANGES or (event == "open" and arguments[2] & os.O_ACCMODE):
            self.calls += 1
            if self.calls == self.last:
                os.kill(os.getpid(), signal.SIGKILL)


class Command:
    """A command of mmgen, run again and again in the folder `place`.

    expected  the folder with what the undisturbed command leaves
    seconds   that it takes
    calls     that it makes to change files
    """

    def __init__(self, arguments: Sequence[str], expected: Path) -> None:
        self.arguments, self.expected, self.place = arguments, expected, expected.with_name("case")
        self.log, self.counted = expected.with_name("log"), expected.with_name("calls")
        expected.mkdir()
        self.run_undisturbed()
        gc.freeze()  # forks need not look through what is here already
        atexit.register(gc.unfreeze)  # else libraries report leaks
        begin = time.monotonic()
        if wrong := self.case(kills=[])[1]:
            raise SystemExit(f"error: mmgen {' '.join(arguments)}: {wrong}")
        self.seconds, self.calls = time.monotonic() - begin, int(self.counted.read_text())

    def run_undisturbed(self) -> None:
        """Run it in this process, so that everything is imported."""
        with contextlib.chdir(self.expected):
            CliRunner().invoke(mmgen, self.arguments)

    def draw_kills(self, draw: random.Random) -> list[tuple[float, int]]:
        """A time in seconds and the number of a call for each kill, whichever comes first."""
        kills = []
        for _ in range(draw.randint(1, 3)):
            by_call = self.calls and draw.random() < 0.5
            kills.append((LIMIT, draw.randint(1, self.calls)) if by_call else (draw.uniform(0, self.seconds), 0))
        return kills

    def case(self, kills: Sequence[tuple[float, int]]) -> tuple[int, str]:
        """How many of these kills the command did not outrun, and what is wrong after them; empty if nothing is."""
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        statuses = [self.run(self.place, seconds, last_call) for seconds, last_call in [*kills, (LIMIT, 0)]]
        killed = statuses[:-1].count(-signal.SIGKILL)
        if statuses[-1] or killed + statuses.count(0) < len(statuses):
            return killed, f"it ends with {statuses}: {self.log.read_text()[-300:].strip()}"
        return killed, " / ".join(differences(self.expected, self.place))[:400]

    def run(self, folder: Path, seconds: float = LIMIT, last_call: int = 0) -> int:
        """The exit status of a fork that runs the command in a folder, and is killed after so many seconds."""
        pid = os.fork()
        if not pid:
            self.do_and_exit(folder, last_call)
        timer = threading.Timer(seconds, os.kill, (pid, signal.SIGKILL))
        timer.start()
        while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            self.meanwhile(pid, folder, seconds == LIMIT)
        timer.cancel()
        timer.join()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def do_and_exit(self, folder: Path, last_call: int) -> NoReturn:
        """Run the command in this process, a fork, and end it without what its parent has still to do."""
        status, killer = 1, Killer(last_call)
        try:
            sys.stdout = sys.stderr = self.log.open("w", buffering=1)
            os.chdir(folder)
            sys.addaudithook(killer)
            mmgen(self.arguments, prog_name="mmgen")
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
            self.counted.write_text(str(killer.calls))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)

    def meanwhile(self, pid: int, folder: Path, to_the_end: bool) -> None:
        """Called again and again while the fork runs."""
        time.sleep(0.001)


class Service(Command):
    """`mmgen serve`. It is asked while it runs; its last answer is kept as a file, which is compared as others are."""

    def run_undisturbed(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.arguments = [*self.arguments, str(self.port)]
        picture = base64.b64encode(self.expected.with_name("pictures").joinpath("0.png").read_bytes()).decode()
        self.body = json.dumps({"inputs": {"image": picture, "caption": "a dog"}})
        self.run(self.expected)

    def meanwhile(self, pid: int, folder: Path, to_the_end: bool) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        try:
            connection.request("POST", "/v1/ask", self.body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status == 200:
                (folder / "answer.json").write_bytes(response.read())
                if to_the_end:
                    os.kill(pid, signal.SIGTERM)
        except (OSError, http.client.HTTPException):
            time.sleep(0.005)  # it does not listen yet, or not any more
        finally:
            connection.close()


def differences(expected: Path, actual: Path) -> Iterator[str]:
    """What is wrong with the files in a folder."""
    before, after = (
        {
            str(path.relative_to(folder)): path
            for file in folder.rglob("*")
            if file.is_file() and not file.name.endswith(".lock")
            for path in [file.parent if file.suffix == ".h5" else file]  # a kill makes more parts of a store
        }
        for folder in (expected, actual)
    )
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield f"{name} is {'left over' if name in after else 'missing'}"
        elif Path(name).name not in VARYING and content(before[name]) != content(after[name]):
            yield f"{name} differs"


def content(path: Path) -> object:
    """What must be equal: the bytes of a file, or the records of a store."""
    if path.is_file():
        return path.read_bytes()
    store = FeatureStore(path)
    return [(record.key, record.features.tolist(), record.boxes.tolist()) for record in map(store.read, store)]


def prepare(names: Sequence[str], folder: Path) -> dict[str, Command]:
    """The commands by name, up to the last of these names."""
    (folder / "kills.toml").write_text(RECIPE)
    (folder / "pictures").mkdir()
    for number in range(12):
        Image.effect_noise((64, 64), 10 * number).save(folder / "pictures" / f"{number}.png")
    commands: dict[str, Command] = {}
    for name, text in COMMANDS.items():
        if not commands.keys() >= {*names}:
            commands[name] = (Service if name == "serve" else Command)(text.format(folder).split(), folder / name)
    return commands


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.kills", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=40, help="kills, at least")
    parser.add_argument("--seed", type=int, default=1, help="of the first case; the next has the next")
    parser.add_argument("--only", default=",".join(COMMANDS), help="names of commands, with commas between them")
    options = parser.parse_args(arguments)
    names = options.only.split(",")
    if not {*names} <= COMMANDS.keys():
        parser.error(f"--only: choose from {', '.join(COMMANDS)}")
    os.environ["OMP_NUM_THREADS"] = "1"  # commands take it; a fork has no other thread
    torch.set_num_threads(1)
    begin, kills, cases, wrong_cases = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="mmgen-kills-") as folder:
        commands = prepare(names, Path(folder))
        while kills < options.count:
            name, seed = names[cases % len(names)], options.seed + cases
            killed, wrong = commands[name].case(commands[name].draw_kills(random.Random(seed)))
            kills, cases, wrong_cases = kills + killed, cases + 1, wrong_cases + bool(wrong)
            if wrong:
                print(f"{name}: {wrong}; repeat it with --count 1 --seed {seed} --only {name}", flush=True)
    print(f"{kills} kills in {cases} cases, {wrong_cases} wrong, {time.monotonic() - begin:.0f} s")
    return int(wrong_cases > 0)


if __name__ == "__main__":
    sys.exit(main())
