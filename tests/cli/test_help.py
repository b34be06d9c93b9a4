"""What somebody reads who looks for a command, a part or an option: whole sentences, in groups, in 80 columns."""

import re

import click
import pytest
from click.testing import CliRunner
from kit import toys

from mmgen import __version__ as VERSION
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
    ]
    start = text.partition("Start:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in start.splitlines()] == ["run", "init", "check", "show", "report"]
    evaluate = text.partition("Evaluate:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in evaluate.splitlines()] == ["score", "compare", "bench", "judge"]
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


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("run", "r.toml", "--epochs", "3"), "'epochs' is a recipe key: --set training.epochs=VALUE."),
        (("run", "r.toml", "--num-beams", "3"), "'num_beams' is a recipe key: --set decoding.num_beams=VALUE."),
        (("show", "r.toml", "--seed", "3"), "'seed' is a recipe key: --set seed=VALUE."),
        (("run", "r.toml", "--max-tokens", "3"), "Set recipe keys with --set A.B=VALUE."),
        (("check", "r.toml", "--profile", "paper"), "`mmgen check` checks every profile; `mmgen run` and `mmgen show`"),
        (("compare", "r", "--epochs", "3"), "'--epochs'.\n"),
    ],
)
def test_keys_that_are_taken_for_options(arguments, hint):
    assert hint in said(*arguments).replace(" Did you mean", "\n")


def test_what_is_typed_wrongly_steers_no_terminal():
    assert r"\x1b[2J" in said("init", "a", "\x1b[2J") and "\x1b" not in said("init", "a", "\x1b[2J")


def terminal(monkeypatch, columns: int) -> None:
    monkeypatch.setattr("mmgen.cli.parts.width", lambda stream: columns)


def test_plugins_fit_80_columns(monkeypatch):
    terminal(monkeypatch, 80)
    text = said("plugins")
    assert max(map(len, text.splitlines())) <= 80
    assert (
        "\nbackbones: [backbone]\n  albert                ALBERT (Lan et al., 2020); encodes without a cache.\n" in text
    )
    assert "\nextractors: a table `extractor` inside an input\n" in text and "__init__.py" not in text
    assert "plugins/mmgen_encoders/__init__.py:" in said("plugins", "--paths")


def test_keys_of_a_part(monkeypatch):
    terminal(monkeypatch, 50)
    assert said("plugins", "diversity", "captioneval").replace(VERSION, "VERSION") == SHOWN
    assert said("plugins", "bench").endswith("\n  `mmgen bench --help` shows its options.\n\n")
    assert "required: string" in said("plugins", "jsonl")
    assert 'normalize = "none"' in said("plugins", "regions") and '"none", "length", "standard"' in said(
        "plugins", "grid"
    )
    assert ".py:" not in said("plugins", "bert") and ".py:" in said("plugins", "bert", "--paths")
    assert (
        said("plugins", "brt")
        == "error: no part is named 'brt'; did you mean 'bert'?; `mmgen plugins` lists all parts\n"
    )


SHOWN = """\
diversity: metric, [metrics.NAME]
  Diversity of texts in percent: distinct-1 and
  -2, share of unique texts, self-BLEU.
  From mmgen-framework VERSION.

  This part has no keys.

captioneval: metric, [metrics.NAME]
  BLEU-1 to 4, ROUGE-L, METEOR 1.5 and CIDEr-D,
  times 100, by pycocoevalcap; one text against
  all its targets.
  From mmgen-framework VERSION.

  tokenizer = "auto"    "auto", "java", "own"
      "java": Stanford's; "own": ours, without
      Java; "auto": Stanford's if Java is
      installed
  meteor = true         true or false
      also METEOR, which needs Java, up to 2 GB of
      memory and some seconds to start
  timeout = 120.0       number, over 0
      seconds to wait for an answer from Java

"""


def headless(folder):
    """An encoder as many are published: without a masked-LM head."""
    backbone = toys.model().backbone
    backbone.model.base_model.save_pretrained(folder)
    backbone.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_head_that_must_be_learnt_is_told_by_what_learns_alone(tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = headless(tmp_path / "encoder")
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    sets = [f'backbone={{type="bert", weights="{folder}"}}', "training.epochs=1"]
    arguments = ["toy.toml", *(word for setting in sets for word in ("--set", setting))]
    warning = f"{folder}: has no masked-LM head, which turns states into words. A new head is created from the word"
    assert "caption" in said("data", "check", *arguments) and not caplog.messages
    assert "done in" in said("run", *arguments)
    assert [message.startswith(warning) for message in caplog.messages].count(True) == 1
