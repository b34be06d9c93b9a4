"""Signals that stop a command: handled once; earlier handlers are restored."""

import os
import signal

import pytest

from mmgen.training.signals import SIGNALS, handling, interruptions


@pytest.fixture
def handlers():
    """Signal handlers as in a terminal, however these tests were started."""
    before = {
        number: signal.signal(number, handler)
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL))
    }
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_second_ctrl_c_does_not_wait(handlers):
    with pytest.raises(KeyboardInterrupt), interruptions() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.is_set()
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_that_is_ignored_stays_so(handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptions() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.is_set() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_every_signal_that_asks_to_stop_is_heeded(number):
    before, called = signal.getsignal(number), []
    signal.signal(number, signal.SIG_DFL)
    try:
        with handling(lambda: called.append(number)):
            signal.raise_signal(number)
        assert called == [number] and signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with handling(lambda: called.append(number)):
            signal.raise_signal(number)
        assert called == [number]
    finally:
        signal.signal(number, before)
