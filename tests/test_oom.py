"""Work that runs out of memory: generation, queries, probes and extraction continue with halved batches, and give
the same results."""

import gc
import weakref

import pytest
import torch
from kit import small_runs, toys
from kit.writing import out_of_memory_error

from mmgen.errors import RunError
from mmgen.oom import ADVICE_FEWER_TEXTS, OomRetry, out_of_memory

pytestmark = pytest.mark.slow
DeviceError = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have the class


def halving(**more):
    lines = []
    return OomRetry("counting", "count less", unit="number", named=str, say=lines.append, **more), lines


def test_pieces_are_halved_until_they_fit_and_stay_so_or_the_single_one_is_named():
    sparing, lines = halving()
    tried = []

    def work(piece):
        tried.append(len(piece))
        if len(piece) > 3 or 99 in piece:
            raise out_of_memory_error()
        return sum(piece)

    for batch, sizes in (range(14), [3, 3, 3, 3, 2]), (range(3), [3]), (range(5), [3, 2]), ([], []):
        pieces = [(list(piece), result) for piece, result in sparing.over(list(batch), work)]
        assert [len(piece) for piece, _ in pieces] == sizes and sum((piece for piece, _ in pieces), []) == [*batch]
        assert all(result == sum(piece) for piece, result in pieces)
    assert tried == [14, 7, 3, 3, 3, 3, 2, 3, 3, 2]
    with pytest.raises(RunError, match=r"^counting: out of memory with a single number \('99'\); count less$"):
        list(sparing.over([1, 99], work))
    assert lines == [f"counting: out of memory; from here on {n} at a time" for n in ("3 numbers", "1 number")]


def test_what_an_attempt_held_is_let_go_of_before_the_next():
    sparing, _ = halving()
    held, alive = [], []

    def work(piece):
        alive.append(sum(reference() is not None for reference in held))
        tensor = torch.zeros(3)
        held.append(weakref.ref(tensor))
        if len(piece) > 1:
            raise out_of_memory_error()

    gc.disable()
    try:
        list(sparing.over([1, 2, 3, 4], work))
    finally:
        gc.enable()
    assert alive == [0] * 6


def test_a_query_that_does_not_fit_into_memory_is_one_line(monkeypatch):
    def too_much(*_):
        raise out_of_memory_error()

    folder = small_runs.drawn("writes")
    monkeypatch.setattr("mmgen_generators.masked.MaskedGenerator.generate", too_much)
    done = toys.mmgen_here(folder, "generate", ".", "--step", "words", "--caption", "a dog", "--n", "5")
    message = f"error: writing: out of memory with a single example ('caption'); {ADVICE_FEWER_TEXTS}\n"
    assert done.returncode == 1 and done.stderr.endswith(message)


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (torch.OutOfMemoryError("HIP out of memory"), True),
        (
            RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: 9 bytes."),
            True,
        ),
        (MemoryError(), True),
        (RuntimeError("could not create a primitive"), True),
        (RuntimeError("could not create a primitive descriptor for a matmul primitive"), False),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (DeviceError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"), True),
        (DeviceError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("std::bad_alloc"), True),
        (KeyError("memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, short):
    assert out_of_memory(error) is short
