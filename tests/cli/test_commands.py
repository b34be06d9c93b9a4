"""Commands of plugins: found like other parts, imported when called; a broken command stops no other command."""

import contextlib
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner
from kit.toys import mmgen as mmgen_alone
from kit.toys import mmgen_here

from mmgen.cli import main
from mmgen.registry import installed
from mmgen.testing import CommandSuite

pytestmark = pytest.mark.slow

GREET = """
    from typing import Literal
    import mmgen
    class Greet(mmgen.CommandConfig):
        "Say hello to a run."
        type: Literal["greet"] = "greet"
        def build(self):
            BUILD
    @mmgen.hookimpl
    def register_commands():
        return [Greet]
"""
LAZY = GREET.replace("BUILD", "from mmgen_greet_command import greet; return greet")
COMMAND = """
    import click
    from mmgen.errors import DataError
    @click.command()
    @click.argument("name")
    def greet(name):
        "Say hello to NAME."
        if name == "nobody":
            raise DataError("nobody: is not there; name somebody")
        click.echo(f"hello {name}")
"""


def call(*arguments: str) -> subprocess.CompletedProcess:
    return mmgen_here(Path.cwd(), *arguments)


@pytest.fixture
def greet(site, tmp_path):
    site("mmgen-greet", "mmgen_greet", LAZY)
    (tmp_path / "mmgen_greet_command.py").write_text(textwrap.dedent(COMMAND))


def test_a_plugins_command_runs(greet, tmp_path):
    done = mmgen_alone(tmp_path, "greet", "you")
    assert (done.stdout, done.stderr, done.returncode) == ("hello you\n", "", 0)


def test_its_errors_are_a_line(greet, tmp_path):
    done = mmgen_alone(tmp_path, "greet", "nobody")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == "error: nobody: is not there; name somebody\n"


def test_help_and_the_list_of_plugins_have_its_summary(greet):
    listed = call("--help")
    assert "\n  greet     Say hello to a run.\n" in listed.stdout and listed.stderr == ""
    assert "Say hello to a run. (mmgen-greet 0.3)\n" in call("plugins").stdout


def test_help_imports_no_command_no_plugin_without_one_and_nothing_heavy(greet):
    code = (
        "import sys; from mmgen.cli import main; main.main(['--help'], standalone_mode=False); print([m for m in "
        "('torch', 'numpy', 'transformers', 'rich', 'h5py', 'mmgen_serve.command', 'mmgen_inputs', "
        "'mmgen_greet_command') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done.stdout + done.stderr
    assert all(f"\n  {name} " in done.stdout for name in ("greet", "judge", "run"))


@pytest.mark.parametrize(
    ("build", "wrong"),
    [
        (
            "import that_is_not_there",
            "mmgen-greet 0.3, Greet.build (mmgen_greet.py:8): ModuleNotFoundError: No module named 'that_is_not_there' "
            "(MMGEN_TRACEBACK=1 prints the traceback)",
        ),
        ("return 7", "build() of Greet returned 7; it must return a click.Command"),
    ],
)
def test_a_command_that_cannot_be_had_is_a_line_and_stops_no_other(build, wrong, site):
    site("mmgen-greet", "mmgen_greet", GREET.replace("BUILD", build))
    done = call("greet", "you")
    assert (done.stdout, done.stderr, done.returncode) == ("", f"error: {wrong}\n", 1)
    assert "\n  greet     Say hello to a run.\n" in call("--help").stdout
    assert call("judge", "--help").returncode == 0


def test_two_commands_of_one_name_are_a_line_and_stop_no_other(greet, site):
    site("mmgen-hello", "mmgen_hello", LAZY)
    both = "the command 'greet' is provided by mmgen-greet 0.3 and mmgen-hello 0.3; rename or uninstall all but one"
    done, listed = call("greet", "you"), call("--help")
    assert (done.stdout, done.stderr, done.returncode) == ("", f"error: {both}\n", 1)
    assert listed.stderr == f"error: {both}\n" and listed.returncode == 0 and "\n  judge " in listed.stdout
    assert call("init", "--help").returncode == 0


def test_a_name_of_mmgens_own_stays_its_own(site):
    site("mmgen-greet", "mmgen_greet", GREET.replace('"greet"', '"run"').replace("BUILD", "return 1 / 0"))
    assert " run [OPTIONS] RECIPE\n\n" in call("run", "--help").stdout


def test_a_broken_plugin_is_a_line_below_a_command_that_is_not_there(site):
    site("mmgen-greet", "mmgen_greet", "import that_is_not_there")
    broken = "plugin 'greet' (mmgen-greet 0.3) failed to load: No module named 'that_is_not_there'"
    done, strict = call("tune"), call("plugins", "--strict-plugins")
    message = f"error: no command is named 'tune'; `mmgen --help` lists all commands\n  {broken}\n"
    assert (done.stderr, done.returncode) == (message, 1) and call("--help").returncode == 0
    assert (strict.stderr, strict.returncode) == (f"error: {broken}\n", 1)


def test_a_shell_completes_commands_of_plugins_and_stumbles_over_none(site):
    site("mmgen-greet", "mmgen_greet", GREET.replace("BUILD", "return 1 / 0"))
    complete = BashComplete(main, {}, "mmgen", "_MMGEN_COMPLETE").get_completions
    completions = ([], "ju"), (["judge"], "fi"), ([], "gr")
    assert [item.value for words in completions for item in complete(*words)] == ["judge", "fill", "greet"]


class TestJudge(CommandSuite):
    def config(self):
        return installed().get("command", "judge").config()


class TestServe(CommandSuite):
    def config(self):
        return installed().get("command", "serve").config()


@pytest.mark.parametrize(
    "arguments",
    [
        ["features", "info", "x" * 300],
        ["features", "info", "."],
        ["check", "x" * 300],
        ["score", "x" * 300, "--references", "y"],
        ["init", "file"],
        ["init", "file/below"],
        ["generate", "run", "x" * 300],
        ["show", "loop"],
        ["compare", "loop"],
        ["score", "loop", "--references", "file", "--json", "file"],
    ],
    ids=lambda words: " ".join(words)[:30],
)
def test_paths_that_cannot_be_are_reported_in_one_line(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    with contextlib.redirect_stderr(None):
        result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert result.output.count("\n") == 1 and result.output.startswith("error: ")
