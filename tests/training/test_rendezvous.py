"""Processes that cannot connect report it in one line and in bounded time; their process groups are destroyed."""

import os

import pytest
import torch
from kit import forked

from mmgen.errors import RunError
from mmgen.training import distributed, rendezvous

NAMES = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", rendezvous.WAIT)


@pytest.fixture
def start(monkeypatch):
    """Start with only these environment variables; returns the message."""
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)

    def tried(**environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, str(value))
        with pytest.raises(RunError) as error:
            distributed.start()
        return str(error.value)

    return tried


@pytest.mark.parametrize("value", ["abc", "0", "-1", ""])
def test_a_world_size_that_is_no_number(start, value):
    said = f"WORLD_SIZE is '{value}' in the environment, but must be a whole number of at least 1; {rendezvous.HOW}"
    assert start(WORLD_SIZE=value, RANK=0) == said


def test_a_place_on_the_machine_that_is_no_number(start):
    said = f"LOCAL_RANK is 'x' in the environment, but must be a whole number of at least -1; {rendezvous.HOW}"
    assert start(WORLD_SIZE=1, LOCAL_RANK="x") == said


def test_what_a_launcher_left_behind(start):
    assert start(WORLD_SIZE=2) == f"WORLD_SIZE is 2 in the environment, but RANK is not set; {rendezvous.HOW}"
    assert start(RANK=0) == f"WORLD_SIZE is 2 in the environment, but MASTER_ADDR is not set; {rendezvous.HOW}"
    more = {"RANK": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 1}
    assert (
        start(**more) == f"RANK is 2 in the environment, but must be at most 1, since WORLD_SIZE is 2; {rendezvous.HOW}"
    )


@pytest.mark.slow
def test_waiting_ends(start, caplog, monkeypatch):
    monkeypatch.setattr(rendezvous, "SAID_AFTER", 0.0)
    caplog.set_level("WARNING", logger="mmgen")  # other tests may have silenced it
    with forked.reserved_port() as port:
        said = start(WORLD_SIZE=2, RANK=0, MASTER_ADDR="127.0.0.1", MASTER_PORT=port, **{rendezvous.WAIT: 1})
    place = f"127.0.0.1:{port}"
    assert said == (
        f"process 0 of 2: the others did not connect to {place} within 1 s; {rendezvous.HOW}; to wait longer, set "
        "MMGEN_WAIT_SECONDS"
    )
    assert caplog.messages == [
        f"process 0 of 2: waiting for the other processes at {place} (WORLD_SIZE is 2) for at most 1 s"
    ]


def test_a_group_is_taken_down_once(tmp_path):
    rendezvous.leave()  # without a rendezvous
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    rendezvous.leave()
    assert not torch.distributed.is_initialized()
    rendezvous.leave()


def test_one_process_needs_no_rendezvous(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert rendezvous.meet() is None and "MASTER_ADDR" not in os.environ
