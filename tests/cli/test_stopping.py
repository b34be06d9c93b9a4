"""Ctrl-C, a scheduler's SIGTERM, an unwritable output: every command ends with one line, and says how to resume."""

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image

import mmgen.cli.recipes
from mmgen.cli import main
from mmgen.features.images import open_image
from mmgen.features.store import FeatureStore

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


def test_extraction_says_how_it_goes_on_and_does(number, tmp_path, monkeypatch):
    for name in "abcd":
        Image.new("RGB", (8, 6)).save(tmp_path / f"{name}.png")
    roi = "--type roi --set model=test_resnet --set image_size=32 --set weights=random --set batch_size=1"
    command, opened = ["features", "extract", str(tmp_path), str(tmp_path / "x.h5"), *roi.split()], []

    def stopping(path):
        opened.append(path)
        if len(opened) == 3:
            os.kill(os.getpid(), number)
        return open_image(path)

    before = signal.getsignal(number)
    with monkeypatch.context() as patch:
        patch.setattr("mmgen.features.images.open_image", stopping)
        stopped = CliRunner().invoke(main, command)
    assert signal.getsignal(number) is before
    message = "error: stopped; the images so far are kept; run the same command again to continue"
    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (1, message)
    done = CliRunner().invoke(main, command).output
    assert re.search(r"[123] images written, [123] already in the store", done)
    assert sorted(FeatureStore(tmp_path / "x.h5")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("show", "stopped"),
        ("run", "stopped; run the same command again to resume from the last checkpoint"),
        ("run --fresh", "stopped; run the same command without --fresh to resume from the last checkpoint"),
    ],
)
def test_any_command_says_that_it_was_stopped(number, command, message, monkeypatch):
    """Also inside an `exec`, where Python treats a KeyboardInterrupt differently, and where a library makes an error of
    it."""

    def load(*_, **__):
        try:
            exec("os.kill(os.getpid(), number)", {"os": os, "number": number})
        except BaseException:
            raise ModuleNotFoundError("Could not import module") from None

    monkeypatch.setattr(mmgen.cli.recipes, "load_recipe", load)
    stopped = CliRunner().invoke(main, [*command.split(), "x.toml"])
    assert (stopped.exit_code, stopped.stderr) == (1, f"error: {message}\n")


def test_elsewhere_than_in_the_main_thread_a_command_does_its_work():
    results = []
    thread = threading.Thread(target=lambda: results.append(CliRunner().invoke(main, ["plugins"]).exit_code))
    thread.start()
    thread.join()
    assert results == [0]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["schema"], ["--help"]], ids=" ".join)
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
