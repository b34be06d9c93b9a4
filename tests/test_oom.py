"""Work that runs out of memory: generation, queries, probes and extraction continue with halved batches, and give
the same results."""

import gc
import weakref

import pytest
import torch
from click.testing import CliRunner
from kit import toys
from kit.writing import out_of_memory_error

from mmgen.cli import main
from mmgen.errors import RunError
from mmgen.oom import ADVICE_FEWER_TEXTS, OomRetry, out_of_memory

pytestmark = pytest.mark.slow
DeviceError = getattr(torch, "AcceleratorError", RuntimeError)  # newer versions of torch have the class


def halving(**more):
    lines = []
    return OomRetry("counting", "count less", unit="number", named=str, say=lines.append, **more), lines


def test_pieces_are_halved_until_they_fit_and_stay_so():
    sparing, lines = halving()
    tried = []

    def work(piece):
        tried.append(len(piece))
        if len(piece) > 3:
            raise out_of_memory_error()
        return sum(piece)

    batches = [list(range(14)), list(range(3)), list(range(5)), []]
    results = [[(list(piece), result) for piece, result in sparing.over(batch, work)] for batch in batches]
    assert [[piece for piece, _ in batch_results] for batch_results in results] == [
        [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11], [12, 13]],
        [[0, 1, 2]],
        [[0, 1, 2], [3, 4]],
        [],
    ]
    assert all(result == sum(piece) for batch_results in results for piece, result in batch_results)
    assert tried == [14, 7, 3, 3, 3, 3, 2, 3, 3, 2]
    assert lines == ["counting: out of memory; from here on 3 numbers at a time"]


def test_a_single_item_that_does_not_fit_is_named():
    sparing, lines = halving()

    def work(piece):
        if 2 in piece:
            raise out_of_memory_error()
        return piece

    with pytest.raises(RunError, match=r"^counting: out of memory with a single number \('2'\); count less$"):
        list(sparing.over([1, 2], work))
    assert lines == ["counting: out of memory; from here on 1 number at a time"]


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


def test_a_query_that_does_not_fit_into_memory_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["run", "toy.toml", "--step", "first", "--set", "data.train_size=8"])
    assert done.exit_code == 0, done.output

    def too_much(*_):
        raise out_of_memory_error()

    monkeypatch.setattr("mmgen_generators.masked.MaskedGenerator.generate", too_much)
    done = CliRunner().invoke(main, ["generate", "runs/toy/default/seed-0", "--caption", "a dog", "--n", "5"])
    assert done.exit_code == 1
    assert (
        done.output.splitlines()[-1]
        == f"error: writing: out of memory with a single example ('caption'); {ADVICE_FEWER_TEXTS}"
    )


@pytest.mark.parametrize(
    ("error", "short"),
    [
        (torch.OutOfMemoryError("HIP out of memory"), True),
        (
            RuntimeError(
                "[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried to allocate "
                "9 bytes."
            ),
            True,
        ),
        (MemoryError(), True),
        (RuntimeError("could not create a primitive"), True),
        (RuntimeError("could not create a primitive descriptor for a matmul primitive"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (
            DeviceError("CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported"),
            True,
        ),
        (DeviceError("CUDA error: device-side assert triggered"), False),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
        (KeyError("memory"), False),
    ],
)
def test_what_counts_as_out_of_memory(error, short):
    assert out_of_memory(error) is short
