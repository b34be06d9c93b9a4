"""Ctrl-C, a scheduler's SIGTERM, an unwritable output: every command ends with one line, and says how to resume."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Literal

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import mmgen.cli.recipes
from mmgen.cli import main
from mmgen.features.store import FeatureStore
from mmgen.parts import Extractor, Record

pytestmark = pytest.mark.slow

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(params=SIGNALS, ids=lambda number: number.name)
def number(request):
    """The number of a signal that behaves as in a terminal."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in zip(SIGNALS, (signal.default_int_handler, signal.SIG_DFL), strict=True)
    }
    yield request.param
    for signal_number, handler in before.items():
        signal.signal(signal_number, handler)


class Stops(Extractor):
    """The mean colour of every picture; sends a signal at the third."""

    fingerprint = {"extractor": "means"}

    def __init__(self, number=None):
        self.number = number

    def records(self, source, skip=frozenset()):
        for count, picture in enumerate(image for image in source if image.key not in skip):
            if count == 2 and self.number:
                os.kill(os.getpid(), self.number)
            yield Record(picture.key, np.asarray(picture.load(), np.float32).mean((0, 1))[None])


class StopsConfig(mmgen.ExtractorConfig):
    """The mean colour of every picture."""

    type: Literal["means"] = "means"
    number: int | None = None

    def build(self):
        return Stops(self.number)


def test_extraction_says_how_it_goes_on_and_does(number, tmp_path, monkeypatch):
    (tmp_path / "photos").mkdir()
    for name in "abcd":
        Image.new("RGB", (8, 6)).save(tmp_path / "photos" / f"{name}.png")
    command = ["features", "extract", str(tmp_path / "photos"), str(tmp_path / "x.h5"), "--type", "means"]
    monkeypatch.setattr("mmgen.recipe.load.part_from", lambda *_: StopsConfig(number=number))
    before = signal.getsignal(number)
    stopped = CliRunner().invoke(main, command)
    assert signal.getsignal(number) is before
    message = "error: stopped; the images so far are kept; run the same command again to continue"
    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (1, message)
    monkeypatch.setattr("mmgen.recipe.load.part_from", lambda *_: StopsConfig())
    assert "2 images written, 2 already in the store" in CliRunner().invoke(main, command).output
    assert sorted(FeatureStore(tmp_path / "x.h5")) == ["a", "b", "c", "d"]


def test_any_command_says_that_it_was_stopped(number, tmp_path):
    """Also inside an `exec`, where Python treats a KeyboardInterrupt differently."""
    code = """
        import mmgen.cli.recipes
        from mmgen.cli import main

        mmgen.cli.recipes.load_recipe = lambda *_, **__: exec("import os; os.kill(os.getpid(), NUMBER)")
        main()
    """
    command = [sys.executable, "-c", textwrap.dedent(code).replace("NUMBER", str(int(number))), "show", "x.toml"]
    stopped = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (1, "", "error: stopped\n")


def test_what_a_library_makes_of_being_stopped_is_no_error(number, monkeypatch):
    def imported(*_, **__):
        try:
            os.kill(os.getpid(), number)
        except BaseException:
            raise ModuleNotFoundError("Could not import module") from None

    monkeypatch.setattr(mmgen.cli.recipes, "load_recipe", imported)
    stopped = CliRunner().invoke(main, ["run", "x.toml"])
    assert (stopped.exit_code, stopped.stderr) == (
        1,
        "error: stopped; run the same command again to resume from the last checkpoint\n",
    )


def test_a_stopped_run_that_started_over_says_how_to_keep_its_checkpoint(number, monkeypatch):
    monkeypatch.setattr(mmgen.cli.recipes, "load_recipe", lambda *_, **__: os.kill(os.getpid(), number))
    stopped = CliRunner().invoke(main, ["run", "x.toml", "--fresh"])
    assert (stopped.exit_code, stopped.stderr) == (
        1,
        "error: stopped; run the same command without --fresh to resume from the last checkpoint\n",
    )


def test_a_command_that_loses_its_stop_does_not_end_well(number, tmp_path, monkeypatch):
    def load(*_, **__):
        with contextlib.suppress(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        return SimpleNamespace(callbacks={}, inputs={}, steps={}), SimpleNamespace()

    (tmp_path / "x.toml").write_text("")
    monkeypatch.setattr(mmgen.cli.recipes, "load_recipe", load)
    monkeypatch.setattr("mmgen.recipe.weight_files.weight_errors", lambda *_: [])
    stopped = CliRunner().invoke(main, ["check", str(tmp_path / "x.toml")])
    assert (stopped.exit_code, stopped.stderr) == (1, "error: stopped\n")


def test_elsewhere_than_in_the_main_thread_a_command_does_its_work():
    results = []
    thread = threading.Thread(target=lambda: results.append(CliRunner().invoke(main, ["plugins"]).exit_code))
    thread.start()
    thread.join()
    assert results == [0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["plugins"], ["schema"], ["--help"]], ids=" ".join)
def test_a_full_disk_behind_standard_output_is_a_line(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mmgen", *arguments], stdout=full, stderr=subprocess.PIPE, text=True
        )
    message = "error: standard output or an output file: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, message)


def test_a_closed_pipe_ends_the_command_silently():
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([sys.executable, "-m", "mmgen", "plugins"], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")


def test_letters_that_standard_output_has_not_are_spelt_out():
    code = "import click; from mmgen.cli import main; main.callback(); click.echo('caf\\u00e9 \\u732b')"
    latin = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=latin)
    assert (done.stdout, done.returncode) == (b"caf\xe9 \\u732b\n", 0)
