"""Lookup of commands: help in groups, summaries, and suggestions for other names."""

import re

import click
import pytest
from click.testing import CliRunner

from mmgen.cli import main
from mmgen.cli.lookup import CORE_COMMANDS, MODULES, SYNONYMS, core_command
from mmgen.registry import installed


def said(*arguments: str) -> str:
    return CliRunner().invoke(main, arguments).output


def test_help_is_in_groups_and_begins_with_run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = said("--help")
    assert re.findall(r"^(\w.*):$", text, re.M) == [
        "Options",
        "Start",
        "Your data",
        "Use a trained run",
        "Evaluate",
        "Extend",
        "Many machines",
    ]
    start = text.partition("Start:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in start.splitlines()] == ["run", "init", "check", "show", "report"]
    evaluate = text.partition("Evaluate:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in evaluate.splitlines()] == ["score", "compare", "judge"]
    assert "..." not in text.replace("[ARGS]...", "") and max(map(len, text.splitlines())) <= 80


def test_every_command_says_in_a_sentence_what_it_is_for():
    summaries = {name: text for some in CORE_COMMANDS.values() for name, (_, text) in some.items()}
    summaries |= {part.name: part.summary for part in installed().of_kind("command")}
    for name, text in summaries.items():
        assert re.fullmatch(r"[A-Z][^.]*\.", text) and len(text) <= 66, f"{name}: {text}"
    assert all(core_command(name).name == name for name in MODULES) and set(SYNONYMS.values()) <= set(MODULES)


def test_commands_below_others_say_it_too():
    context = click.Context(main)
    groups = {name: main.get_command(context, name) for name in main.list_commands(context)}
    for name, group in groups.items():
        below = group.commands.values() if isinstance(group, click.Group) else ()
        for command in below:
            assert re.fullmatch(r"[A-Z].*[^.]\.", command.get_short_help_str(66)), f"{name} {command.name}"


@pytest.mark.parametrize(
    ("name", "command"), [("trian", "run"), ("train", "run"), ("genrate", "generate"), ("eval", "score")]
)
def test_commands_that_are_called_otherwise_elsewhere(name, command):
    assert said(name) == f"error: no command is named '{name}'; did you mean '{command}'?\n"


def test_an_unknown_command_without_a_likeness():
    assert said("xyzzy") == "error: no command is named 'xyzzy'; `mmgen --help` lists all commands\n"
