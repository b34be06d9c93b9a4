"""A plugin that fails, exits or imports torch is named, and the other plugins load."""

import logging
import os
import signal
import subprocess
import sys

import pytest
from kit.thirdparty import plugin

from mmgen.discovery import loading
from mmgen.registry import collect

HOOK = "import mmgen, sys\n@mmgen.hookimpl\ndef register_embedders():\n    {code}\n    return []"
NAMED = "plugin 'audio' (mmgen-audio 0.3)"


def load(site, code: str) -> tuple[list[str], list[str]]:
    """The plugins that load beside a plugin with this code, and the messages about those that fail."""
    site("mmgen-audio", "mmgen_audio", code)
    loaded, broken = loading.load("mmgen")
    return [source.plugin for source, _ in loaded], [str(plugin) for plugin in broken]


@pytest.mark.parametrize(
    "code, reason",
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import library_that_is_missing", "No module named 'library_that_is_missing'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("import sys; sys.exit()", "SystemExit"),
    ],
)
def test_an_import_that_fails_or_exits_is_named_and_stops_no_other_plugin(site, code, reason):
    loaded, broken = load(site, code)
    assert {"text", "masked", "humaneval"} <= set(loaded) and "audio" not in loaded
    assert broken == [f"{NAMED} failed to load: {reason}"]


def test_distributions_are_read_again_when_one_is_installed(site, tmp_path, monkeypatch):
    reads, read = [], loading.importlib.metadata.entry_points
    monkeypatch.setattr(
        loading.importlib.metadata, "entry_points", lambda **group: reads.append(group) or read(**group)
    )

    def names() -> list[str]:
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        return [source.plugin for source, _ in loading.load("mmgen")[0]]

    load(site, "")
    os.utime(tmp_path, (1, 1))  # nothing was installed for long
    reads.clear()
    assert names() == names() == ["audio"] and len(reads) == 1
    site("mmgen-video", "mmgen_video", "")
    assert names() == ["audio", "video"] and len(reads) == 2


TORCH = "sys.modules.setdefault('torch', sys)"  # as `import torch` does
ADVICE = f"{NAMED} imports torch when it is loaded; import large libraries only where a part is built"


def test_a_plugin_that_imports_torch_is_named(site, monkeypatch, caplog):
    monkeypatch.delitem(sys.modules, "torch")
    loaded, broken = load(site, f"import sys; {TORCH}")
    assert "audio" in loaded and broken == []
    assert caplog.messages == [ADVICE]


def test_a_hook_that_imports_torch_is_named_and_one_that_is_slow_is_not(monkeypatch, caplog):
    """A busy machine is no plugin's fault, and so is torch that was imported before."""
    guilty, slow = (plugin(HOOK.format(code=code)) for code in (TORCH, "import time; time.sleep(0.05)"))
    clock = iter(range(0, 1000, 100))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    with caplog.at_level(logging.WARNING):
        assert collect([slow, guilty]).broken == () and caplog.messages == []
        monkeypatch.delitem(sys.modules, "torch")
        (repeated,) = [plugin(HOOK.format(code=TORCH))]
        assert collect([slow, repeated, guilty]).broken == ()
    assert caplog.messages == [ADVICE]


def test_what_a_hook_prints_goes_to_stderr(capsys):
    collect([plugin(HOOK.format(code="print('noise')"))])
    assert capsys.readouterr() == ("", "noise\n")


def test_ctrl_c_stops_a_plugin():
    with pytest.raises(KeyboardInterrupt):
        collect([plugin(HOOK.format(code="raise KeyboardInterrupt"))])


@pytest.mark.slow  # starts interpreters
def test_a_crash_says_where(site):
    """Also with `--help`, which runs no command."""
    site("mmgen-crash", "mmgen_crash", "import os\nos.abort()")
    for arguments in (["--help"], ["plugins"]):
        done = subprocess.run([sys.executable, "-m", "mmgen", *arguments], capture_output=True, text=True)
        assert done.returncode == -signal.SIGABRT and "Fatal Python error: Aborted" in done.stderr
        assert 'mmgen_crash.py", line 2 in <module>' in done.stderr
