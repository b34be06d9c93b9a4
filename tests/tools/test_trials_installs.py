"""The trial of installations, with commands that only pretend."""

import pytest
from kit import toys

from tools.trials import installs


@pytest.fixture
def commands(monkeypatch):
    """The commands so far; a file of 2 MB is installed, and one of 3 MB of NVIDIA's."""
    seen: list[str] = []

    def run(*command, folder=installs.ROOT):
        seen.append(" ".join(map(str, command)))
        if "pip" in seen[-1] and str(command[-1]).endswith("checkout"):
            for name, size in (("mmgen/a", 2_000_000), ("nvidia/b", 3_000_000)):
                path = command[0].parents[1] / name
                path.parent.mkdir(parents=True)
                path.write_bytes(bytes(size))
        return "first second" if "run" in command else ""

    monkeypatch.setattr(installs, "_run", run)
    return seen


@pytest.mark.parametrize(("number", "surface"), [(1, "Python 3.12, newest"), (5, "Python 3.13, oldest")])
def test_a_case_installs_measures_and_trains(commands, tmp_path, number, surface):
    assert all(f"[steps.{step}]" in toys.recipe() for step in ("first", "second"))
    with installs.opened(0, tmp_path) as case:
        outcome = case(number)
    assert outcome.surface == surface and not outcome.wrong
    assert outcome.sizes["MB"] == 5 and outcome.sizes["of NVIDIA, MB"] == 3
    assert any("--constraint" in command for command in commands) == ("oldest" in surface)
    assert any("lowest-direct" in command and command.endswith("pins.txt") for command in commands) == (number == 5)
    assert commands[-1].endswith("mmgen run toy.toml") and not list(tmp_path.iterdir())


def test_a_command_that_fails_is_wrong_and_nothing_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(installs, "PYTHONS", ("0.0", "0.0", "0.0"))
    monkeypatch.setattr(installs, "_run", lambda *command, folder=None: failing(command))
    with installs.opened(0, tmp_path) as case:
        outcome = case(0)
    assert outcome.wrong == ("git ends with 1: no such thing",) and not list(tmp_path.iterdir())


def failing(command):
    raise installs.Failed(f"{command[0]} ends with 1: no such thing")


def test_the_end_of_a_failed_command_is_said():
    with pytest.raises(installs.Failed, match="^git frobnicate ends with 1: .*frobnicate"):
        installs._run("git", "frobnicate")


def test_a_slow_help_is_wrong(commands, tmp_path, monkeypatch):
    monkeypatch.setattr(installs, "_seconds_of_help", lambda environment: 0.3504)
    outcome = installs.install("3.12", "newest", tmp_path / "case")
    assert outcome.wrong == ("mmgen --help takes at least 350 ms of processor time, over 300",)
    assert outcome.sizes["--help, ms"] == 350


def test_a_command_that_hangs_is_wrong(monkeypatch):
    monkeypatch.setattr(installs, "LIMIT", 0.1)
    with pytest.raises(installs.Failed, match=r"^sleep 600 hangs for over 0\.1 seconds$"):
        installs._run("sleep", "600")
