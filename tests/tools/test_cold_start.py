"""The script that measures a command's way to its first text: when its process has printed two lines."""

import time

import pytest

from tools import cold_start


@pytest.mark.slow
def test_a_process_is_timed_until_its_second_line():
    start = time.perf_counter()
    elapsed, processor = cold_start.seconds("import time; print(1); print(2, flush=True); time.sleep(0.3)", [])
    assert processor > 0 and 0 < elapsed <= time.perf_counter() - start - 0.3  # the process sleeps after that line


@pytest.mark.parametrize("code", ["print('one line')", "print('one'); print('two'); raise SystemExit(3)"])
def test_a_process_that_fails(code):
    with pytest.raises(RuntimeError, match=r"the process failed: \['question'\]"):
        cold_start.seconds(code, ["question"])
