"""Help texts for commands, parts and options: whole sentences, in groups, in 80 columns."""

import re

import pytest
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main


def said(*arguments: str) -> str:
    return CliRunner().invoke(main, arguments).output


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("run", "r.toml", "--epochs", "3"), "'epochs' is a recipe key: --set training.epochs=VALUE."),
        (("run", "r.toml", "--num-beams", "3"), "'num_beams' is a recipe key: --set decoding.num_beams=VALUE."),
        (("show", "r.toml", "--seed", "3"), "'seed' is a recipe key: --set seed=VALUE."),
        (("run", "r.toml", "--max-tokens", "3"), "Set recipe keys with --set A.B=VALUE."),
        (("predict", "r", "--statement", "a"), "Give an input of the model with --input statement=VALUE; "),
        (("check", "r.toml", "--profile", "paper"), "`mmgen check` checks every profile; `mmgen run` and `mmgen show`"),
    ],
)
def test_keys_that_are_taken_for_options(arguments, hint):
    assert hint in said(*arguments).replace(" Did you mean", "\n")


def test_a_command_without_recipe_keys_names_none():
    """click before 8.3 writes the option without quotes."""
    assert re.search(r"--epochs('\.)?\n", said("compare", "r", "--epochs", "3").replace(" Did you mean", "\n"))


def test_what_is_typed_wrongly_steers_no_terminal():
    assert r"\x1b[2J" in said("init", "a", "\x1b[2J") and "\x1b" not in said("init", "a", "\x1b[2J")


def headless(folder):
    """An encoder without a masked-LM head, as many are published."""
    backbone = toys.model().backbone
    backbone.model.base_model.save_pretrained(folder)
    backbone.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.slow
def test_a_head_that_only_trains_is_marked(tmp_path, caplog, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = headless(tmp_path / "encoder")
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    sets = [f'backbone={{type="bert", weights="{folder}"}}', "training.epochs=1"]
    arguments = ["toy.toml", *(word for setting in sets for word in ("--set", setting))]
    warning = f"{folder}: has no masked-LM head, which turns states into words. A new head is created from the word"
    assert "caption" in said("data", "check", *arguments) and not caplog.messages
    assert "done in" in said("run", *arguments)
    assert [message.startswith(warning) for message in caplog.messages].count(True) == 1
