"""Commands of plugins: found like other parts, imported when called; a broken command stops no other command."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from click.shell_completion import BashComplete
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


def test_a_plugins_command_runs_and_its_errors_are_a_line(greet, tmp_path):
    done, failed = (mmgen_here(tmp_path, "greet", name) for name in ("you", "nobody"))
    assert (done.stdout, done.stderr, done.returncode) == ("hello you\n", "", 0)
    message = "error: nobody: is not there; name somebody\n"
    assert (failed.stdout, failed.stderr, failed.returncode) == ("", message, 1)


def test_help_imports_no_command_no_plugin_without_one_and_nothing_heavy(greet):
    code = (
        "import sys; from mmgen.cli import main; main.main(['--help'], standalone_mode=False); print([m for m in "
        "('torch', 'numpy', 'transformers', 'rich', 'h5py', 'mmgen_serve.command', 'mmgen_inputs', "
        "'mmgen_greet_command') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.endswith("\n[]\n"), done.stdout + done.stderr
    assert all(f"\n  {name} " in done.stdout for name in ("greet", "judge", "run"))


def test_a_command_that_cannot_be_had_is_a_line_and_stops_no_other(site):
    site("mmgen-greet", "mmgen_greet", GREET.replace("BUILD", "import that_is_not_there"))
    done = call("greet", "you")
    wrong = (
        "mmgen-greet 0.3, Greet.build (mmgen_greet.py:8): ModuleNotFoundError: No module named 'that_is_not_there' "
        "(MMGEN_TRACEBACK=1 prints the traceback)"
    )
    assert (done.stdout, done.stderr, done.returncode) == ("", f"error: {wrong}\n", 1)
    assert "\n  greet       Say hello to a run.\n" in call("--help").stdout
    assert call("judge", "--help").returncode == 0


def test_two_commands_of_one_name_are_a_line_and_stop_no_other(greet, site):
    site("mmgen-hello", "mmgen_hello", LAZY)
    both = "the command 'greet' is provided by mmgen-greet 0.3 and mmgen-hello 0.3; rename or uninstall all but one"
    done, listed = call("greet", "you"), call("--help")
    assert (done.stdout, done.stderr, done.returncode) == ("", f"error: {both}\n", 1)
    assert listed.stderr == f"error: {both}\n" and listed.returncode == 0 and "\n  judge " in listed.stdout
    assert call("init", "--help").returncode == 0


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


class TestScore(CommandSuite):
    def config(self):
        return installed().get("command", "score").config()


class TestServe(CommandSuite):
    def config(self):
        return installed().get("command", "serve").config()
