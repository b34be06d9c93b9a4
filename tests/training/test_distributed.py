"""Several processes (gloo, on CPUs) train, write and score like one process; when one process ends, the others
report it."""

import contextlib
import json
import shutil
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from kit import forked, toys
from kit.processes import PATHS, RECIPE, WATCHED, log, several
from kit.toys import PLACE, weights
from kit.training import LimitedMemory, train_step
from kit.writing import assert_same_texts, write_texts

from mmgen.data.datasets import Datasets
from mmgen.inference.load import load as load_model
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage import generations
from mmgen.training import distributed
from mmgen.training.context import StepContext
from mmgen.training.distributed import Processes
from mmgen.training.train import make_material

MIXED = f"""{RECIPE}
[[steps.second.data]]
type = "scenes"
train_size = 21
val_size = 4
test_size = 6
[[steps.second.data]]
type = "table"
folder = "texts"
test_split = "train"
share = 0.5
objectives = ["words"]
"""

# Learns and writes with little memory in the second process only; no dropout, so that cuts change nothing.
CRAMPED = """
    import os, sys
    from pathlib import Path
    from kit import toys
    from kit.training import LimitedMemory, step
    from kit.writing import limit_memory, write_texts
    from mmgen.data.collate import Source
    from mmgen.training import distributed
    from mmgen.training.train import train
    model = toys.model(dropout=0.0)
    accelerator = distributed.start()
    if accelerator.process_index == 1:
        LimitedMemory(model, pairs=4)
    train(model, toys.context(Path("learnt"), step(), accelerator=accelerator), [Source(toys.examples(20))])
    model = toys.model()
    if accelerator.process_index == 1:
        limit_memory(model, most=3)
    write_texts(Path("written"), model, accelerator=accelerator)
"""


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]


def torchrun(processes: int, folder: Path, script: str, *arguments: str) -> forked.Process:
    (folder / "script.py").write_text(textwrap.dedent(script))
    launcher = "import runpy; runpy.run_module('torch.distributed.run', run_name='__main__', alter_sys=True)"
    options = ("--standalone", f"--nproc-per-node={processes}")
    return forked.Process(launcher, *options, "script.py", *arguments, folder=folder, **PATHS)


def launched(processes: int, folder: Path, script: str, *arguments: str) -> subprocess.CompletedProcess:
    """With `torchrun`, which starts an interpreter for each process."""
    return torchrun(processes, folder, script, *arguments).finish()


# The first process works longer than others wait in a sum; then the second one hangs.
HANGS = """
    import sys, time
    from datetime import timedelta
    from pathlib import Path
    from kit import toys
    from kit.training import step
    from mmgen.data.collate import Source
    from mmgen.errors import RunError
    from mmgen.training import distributed
    from mmgen.training.train import train
    distributed.PATIENCE = timedelta(seconds=1)
    accelerator = distributed.start()
    if accelerator.is_main_process:
        time.sleep(2)
    accelerator.wait_for_everyone()
    print(f"process {accelerator.process_index} goes on")
    model = toys.model()
    forward, seen = model.forward, []

    def hanging(batch):
        seen.append(batch)
        if len(seen) == 4 and not accelerator.is_main_process:
            time.sleep(5)
        return forward(batch)

    model.forward = hanging
    try:
        train(model, toys.context(Path("s"), step(), accelerator=accelerator), [Source(toys.examples(20))])
    except RunError as error:
        sys.exit(f"error: {error}")
"""

# The first process ends while the second one waits for it.
GONE = """
    import os, sys, time
    from mmgen.errors import RunError
    from mmgen.training import distributed
    try:
        accelerator = distributed.start()
        with distributed.peer_failures(accelerator):
            accelerator.wait_for_everyone()
            if accelerator.is_main_process:
                time.sleep(0.5)
                os._exit(7)
            accelerator.wait_for_everyone()
    except RunError as error:
        sys.exit(f"error: {error}")
"""

STARTED = """
    from mmgen.training import distributed
    accelerator = distributed.start()
    with distributed.peer_failures(accelerator):
        accelerator.wait_for_everyone()
    print(f"{accelerator.process_index} of {accelerator.num_processes}\\n", end="")
"""

# What torchrun starts: it hands its environment on and waits.
WAITING = """
    import json, os, time
    from pathlib import Path
    rank = os.environ["RANK"]
    Path(f"new-{rank}").write_text(json.dumps(dict(os.environ)))
    Path(f"new-{rank}").rename(f"environment-{rank}.json")
    while not Path("done").exists():
        time.sleep(0.05)
"""


def prepare(folder: Path) -> None:
    """The recipe whose second step trains on texts too."""
    (folder / "toy.toml").write_text(MIXED)
    (folder / "texts").mkdir()
    for split, first in (("train", 0), ("val", 9)):
        texts = [
            {"id": example.id, "caption": example.inputs["caption"][0], "questions": ["why ?"]}
            for example in toys.examples(12)[first : first + 9]
        ]
        (folder / f"texts/{split}.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))


@pytest.fixture(scope="module")
def single(tmp_path_factory) -> Path:
    """A finished run of one process."""
    folder = tmp_path_factory.mktemp("one")
    prepare(folder)
    toys.ran(folder)
    return folder


def sizes(folder: Path, step: str) -> set[int]:
    """The numbers of micro-batches of a step's updates."""
    recipe, _ = load(folder / "toy.toml", installed(), None, (f'output="{folder}"',))
    with contextlib.chdir(folder):
        sources = Datasets(recipe).sources(step)
    context = StepContext(step, recipe.steps[step], 0, folder, Processes(cpu=True), Progress())
    material = make_material(load_model(folder / PLACE).model, context, [*sources.values()])
    updates = [material.plan.update(number, material.micro_batch_size) for number in range(len(material.plan))]
    return {*map(len, updates)}


def test_torchrun_starts_processes_that_find_together(tmp_path):
    """Forks stand for the processes that it starts, which would import torch once more each."""
    launcher, files = torchrun(2, tmp_path, WAITING), [tmp_path / f"environment-{rank}.json" for rank in range(2)]
    while not all(file.exists() for file in files):
        assert not launcher.ended(), launcher.finish().stderr
        time.sleep(0.01)
    processes = [forked.Process(STARTED, folder=tmp_path, **json.loads(file.read_text())) for file in files]
    results = [process.finish() for process in processes]
    (tmp_path / "done").touch()
    assert [result.stdout for result in results] == ["0 of 2\n", "1 of 2\n"], [result.stderr for result in results]
    assert launcher.finish().returncode == 0


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=pytest.mark.exhaustive)])
def test_several_processes_train_as_one_and_only_the_first_writes(single, tmp_path, processes):
    """Two losses, and two data sets in the second step. Some processes have more micro-batches."""
    assert {3, 4} <= sizes(single, "first") and max(sizes(single, "second")) > 4
    prepare(tmp_path)
    done = several(processes, tmp_path, WATCHED, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / PLACE / "environment.json").read_text())["processes"] == processes
    for step in ("first", "second"):
        ours, theirs = weights(single, step), weights(tmp_path, step)
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert (ours[name] - theirs[name]).abs().max() < 2e-5 or name.endswith("key.bias"), (
                name
            )  # their gradient is rounding alone
        logs = {}
        for our, their in zip(
            log(single / PLACE / "steps" / step), log(tmp_path / PLACE / "steps" / step), strict=True
        ):
            assert flat(our) == pytest.approx(flat(their), abs=1e-5)
            logs |= flat(our)
        assert {"losses generator.loss", "losses words.loss"} <= logs.keys()
    assert "validation_loss" in logs
    said = done.stdout + done.stderr
    assert said.count("first: training") == said.count("built on the spot") == said.count("all files are in") == 1
    assert (tmp_path / "opened-0.txt").read_text()
    assert "".join((tmp_path / f"opened-{rank}.txt").read_text() for rank in range(1, processes)) == ""
    assert [(tmp_path / f"left-{rank}.txt").read_text() for rank in range(processes)] == ["True"] * processes


def flat(record: dict, before: str = "") -> dict[str, float]:
    """All losses of a log's record."""
    flat_values = {}
    for name, value in record.items():
        if isinstance(value, dict):
            flat_values |= flat(value, f"{before}{name} ")
        elif "loss" in before + name:
            flat_values[before + name] = value
    return flat_values


@pytest.mark.parametrize("start", [several, pytest.param(launched, marks=pytest.mark.exhaustive)])
def test_two_processes_write_and_score_what_one_does(single, tmp_path, start):
    shutil.copytree(single, tmp_path, dirs_exist_ok=True)
    for step in ("first", "second"):
        for name in ("generations.jsonl", "scores.json"):
            (tmp_path / PLACE / "steps" / step / name).unlink()
    done = start(2, tmp_path, WATCHED, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    for file in (
        "steps/first/generations.jsonl",
        "steps/first/scores.json",
        "steps/second/generations.jsonl",
        "steps/second/scores.json",
        "table.md",
    ):
        assert (tmp_path / PLACE / file).read_text() == (single / PLACE / file).read_text(), file
    assert (tmp_path / "opened-1.txt").read_text() == ""
    assert [(tmp_path / f"left-{rank}.txt").read_text() for rank in range(2)] == ["True"] * 2


def test_a_process_that_dies_ends_the_others_and_one_goes_on(single, tmp_path):
    prepare(tmp_path)
    died = several(2, tmp_path, WATCHED, "run", "toy.toml", "--step", "first", DIE_1="7")
    assert died.returncode != 0
    (message,) = [line for line in died.stderr.splitlines() if line.startswith("error: ")]
    start = "error: step 'first': process 0 of 2: another process has ended or does not answer ("
    assert message.startswith(start) and message.endswith("the same command resumes from the last checkpoint")
    assert json.loads((tmp_path / PLACE / "steps/first/log.jsonl").read_text().splitlines()[-1])["update"] == 5
    toys.ran(tmp_path, "--step", "first")
    assert log(tmp_path / PLACE / "steps/first")[-1]["loss"] == pytest.approx(
        log(single / PLACE / "steps/first")[-1]["loss"], abs=1e-4
    )


def test_a_process_that_hangs_ends_the_others_and_the_first_may_work_long(tmp_path):
    (tmp_path / "s").mkdir()
    done = several(2, tmp_path, HANGS)
    assert "process 0 goes on" in done.stdout and "process 1 goes on" in done.stdout
    (message,) = [line for line in done.stderr.splitlines() if "process 0 of 2" in line]
    assert message.startswith("error: step 's': process 0 of 2: another process has ended or does not answer (")


def test_the_others_end_when_the_first_ends_while_they_wait(tmp_path):
    done = several(2, tmp_path, GONE)
    assert done.returncode == 7
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert message.startswith("error: process 1 of 2: another process has ended or does not answer (")


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"WORLD_SIZE": "abc"}, "invalid literal for int() with base 10: 'abc'"),
        ({"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": ""}, "MASTER_ADDR"),
        ({"WORLD_SIZE": "2", "RANK": "0", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}, "1/2 clients joined"),
    ],
)
def test_processes_that_cannot_connect_report_it_in_a_line(tmp_path, environment, problem):
    quick = "from datetime import timedelta\nfrom mmgen.training import distributed\n"
    quick += "distributed.PATIENCE = timedelta(seconds=1)\n" + textwrap.dedent(GONE)
    with forked.reserved_port() as port:
        done = forked.run(quick, folder=tmp_path, **{"MASTER_PORT": str(port), **environment})
    (message,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert message.startswith("error: the processes could not connect: ") and problem in message
    assert message.endswith(f"; {distributed.HOW}")


@pytest.fixture(scope="module")
def cramped(tmp_path_factory) -> tuple[Path, str]:
    """The training and texts of two processes, of which the second has little memory."""
    folder = tmp_path_factory.mktemp("two")
    done = several(2, folder, CRAMPED)
    assert done.returncode == 0, done.stderr
    return folder


def test_one_process_out_of_memory_makes_all_of_them_cut(cramped, tmp_path):
    model = toys.model(dropout=0.0)
    LimitedMemory(model, pairs=4)
    alone = train_step(tmp_path / "alone", model)
    together = log(cramped / "learnt")
    assert "micro_batch_size" in alone[-1] and "micro_batch_size" in together[-1]  # it was halved
    for ours, theirs in zip(alone, together, strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5) and ours["grad_norm"] == pytest.approx(
            theirs["grad_norm"], rel=1e-3
        )


def test_while_writing_one_process_cuts_alone(cramped, tmp_path):
    written = generations.read(cramped / "written")
    assert_same_texts(written, write_texts(tmp_path / "whole", toys.model()))
