"""A plugin that sleeps, exits, crashes, moves the folder or leaves a thread: it is named, and the others go on."""

import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from thirdparty import plugin

from mmgen.discovery import watch
from mmgen.discovery.watch import watched
from mmgen.registry import collect

HOOK = "import mmgen, os, signal, threading\n@mmgen.hookimpl\ndef register_embedders():\n    {code}\n    return []"
NAMED = "plugin 'audio' (mmgen-audio 0.3)"


def after(code: str) -> list[str]:
    """What is said of a plugin whose hook does this."""
    return [str(each) for each in collect([plugin(HOOK.format(code=code))]).broken]


def test_what_would_end_the_process_is_an_error_of_the_plugin():
    assert after("os._exit(3)") == [
        f"{NAMED} failed to load: register_embedders: SystemExit: it called os._exit(3)",
    ]
    assert after("raise KeyboardInterrupt") == [
        f"{NAMED} failed to load: register_embedders: it raised KeyboardInterrupt, and nobody has pressed Ctrl-C",
    ]


def test_a_child_that_a_plugin_forks_may_end():
    assert after("if not os.fork(): os._exit(0)\n    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0") == []


def test_ctrl_c_stops_a_plugin_and_stays_what_it_was():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        after("os.kill(os.getpid(), signal.SIGINT)")
    assert after("signal.signal(signal.SIGINT, signal.SIG_IGN)") == []
    assert signal.getsignal(signal.SIGINT) is before


def test_the_working_folder_stays(caplog):
    here = Path.cwd()
    with caplog.at_level(logging.WARNING):
        assert after("os.chdir('/')") == []
    assert Path.cwd() == here
    assert caplog.messages == [f"{NAMED} went to the folder / while it was loaded; mmgen stays in {here}"]


def test_a_thread_that_would_keep_mmgen_from_ending_is_told(caplog):
    """And made a daemon, for which Python does not wait."""
    end = threading.Event()
    kept = [threading.Thread(target=end.wait, name=name, daemon=name == "daemon") for name in ("daemon", "other")]
    with caplog.at_level(logging.WARNING), watched(NAMED):
        for thread in kept:
            thread.start()
    end.set()
    assert caplog.messages == [f"{NAMED} has left a thread ('other'); it is stopped when mmgen ends"]
    assert [thread.daemon for thread in kept] == [True, True]


def test_threads_of_others_are_left_alone():
    """Those that another thread begins meanwhile."""
    begun = []

    def begin():
        begun.append(threading.Thread(target=lambda: None))
        begun[0].start()

    other, go = threading.Thread(target=lambda: (go.wait(), begin())), threading.Event()
    other.start()
    with watched(NAMED):
        go.set()
        other.join()
    assert not begun[0].daemon


def test_what_takes_long_is_named_while_it_does(monkeypatch, capfd):
    monkeypatch.setattr(watch, "SAID_AFTER", 0.0)
    told = ""
    with watched(NAMED):
        for _ in range(3000):
            threading.Event().wait(0.01)
            if told := capfd.readouterr().err:
                break
    assert told == f"loading {NAMED} ...\n"


@pytest.mark.slow
def test_a_crash_says_where(site):
    """Also of `--help`, which runs no command."""
    site("mmgen-crash", "mmgen_crash", "import os\nos.abort()")
    for arguments in (["--help"], ["plugins"]):
        done = subprocess.run([sys.executable, "-m", "mmgen", *arguments], capture_output=True, text=True)
        assert done.returncode == -signal.SIGABRT and "Fatal Python error: Aborted" in done.stderr
        assert 'mmgen_crash.py", line 2 in <module>' in done.stderr


@pytest.mark.slow
def test_a_plugin_whose_thread_never_ends_does_not_keep_mmgen_from_ending(site, tmp_path):
    site("mmgen-stays", "mmgen_stays", "import threading\nthreading.Thread(target=threading.Event().wait).start()")
    done = subprocess.run(
        [sys.executable, "-m", "mmgen", "plugins"], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert "bench" in done.stdout and "plugin 'stays' (mmgen-stays 0.3) has left a thread ('Thread-" in done.stderr


@pytest.mark.slow
def test_a_plugin_that_ends_the_process_on_import_stops_no_other(site, tmp_path):
    site("mmgen-ends", "mmgen_ends", "import os\nos._exit(0)")
    done = subprocess.run([sys.executable, "-m", "mmgen", "plugins"], capture_output=True, text=True, cwd=tmp_path)
    assert "bench" in done.stdout and done.returncode == 0
    assert done.stderr == "error: plugin 'ends' (mmgen-ends 0.3) failed to load: SystemExit: it called os._exit(0)\n"


def test_nothing_stays_changed():
    before = (os._exit, threading.Thread.start)
    with watched(NAMED):
        assert os._exit is not before[0] and threading.Thread.start is not before[1]
    assert (os._exit, threading.Thread.start) == before
