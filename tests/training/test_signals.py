"""Signals that stop a command: handled once; earlier handlers are restored."""

import os
import signal
import sys
import threading

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


class StopsAtItsEnd:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)


def test_a_stop_that_python_drops_in_a_finaliser_is_repeated(handlers, capsys):
    calls, alarm, hook = [], signal.getsignal(signal.SIGALRM), sys.unraisablehook

    def stop():
        calls.append(len(calls))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), handling(stop):
        StopsAtItsEnd()
        assert calls == [0]
        threading.Event().wait(60)
    assert calls == [0, 1] and capsys.readouterr().err == ""
    assert signal.getsignal(signal.SIGALRM) is alarm and sys.unraisablehook is hook
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_other_exceptions_that_python_drops_are_reported(handlers, monkeypatch):
    class Fails:
        def __del__(self):
            raise ValueError("odd")

    reported = []
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: reported.append(str(dropped.exc_value)))
    with interruptions() as stop:
        Fails()
    assert reported == ["odd"] and not stop.is_set()


def test_a_signal_that_is_ignored_stays_so(handlers):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interruptions() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert not stop.is_set() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_elsewhere_than_in_the_main_thread_signals_are_left_alone(handlers):
    seen_handlers = []

    def work():
        with interruptions() as stop:
            seen_handlers.append((stop.is_set(), signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen_handlers == [(False, signal.SIG_DFL)]


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
