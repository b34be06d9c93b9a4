"""Signals that stop a command: handled once; earlier handlers are restored."""

import os
import signal

import pytest

from mmgen.training.signals import SIGNALS, handling, interruptions


@pytest.fixture
def handlers():
    """Signal handlers as in a terminal, however these tests were started."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNALS}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_ctrl_c_does_not_wait(handlers):
    with pytest.raises(KeyboardInterrupt), interruptions() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_every_signal_that_asks_to_stop_is_heeded_unless_it_is_ignored(number, handlers):
    called = []
    for handler in (signal.SIG_DFL, signal.SIG_IGN):  # the second as nohup does
        signal.signal(number, handler)
        with handling(lambda: called.append(number)):
            signal.raise_signal(number)
        assert called == [number] and signal.getsignal(number) is handler
