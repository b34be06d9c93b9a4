"""The number of threads of a run, and the precision of a step."""

import pytest
import torch
from torch import nn

from mmgen.training import threads
from mmgen.training.context import precision

SMALL, LARGE = nn.Linear(10, 10), nn.Linear(threads.SMALL, 1, device="meta")


@pytest.fixture(autouse=True)
def nobody_asks(monkeypatch):
    """An environment without a setting; torch's own setting is two."""
    for name in threads.ASKED:
        monkeypatch.delenv(name, raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("model", "jobs", "count"), [(SMALL, 1, 1), (LARGE, 1, 2), (SMALL, 2, 1), (LARGE, 2, 1), (LARGE, 4, 1)]
)
def test_the_size_of_the_model_and_the_jobs_decide(model, jobs, count):
    said = threads.choose_threads(threads.AUTO, model, jobs)
    assert torch.get_num_threads() == count and "--threads sets another number" in said
    beside = f", up to {jobs} steps side by side, each" if jobs > 1 else ""
    assert said.startswith(f"computing{beside} with {count} thread")
    assert "with 3 threads" in threads.choose_threads(3, model, jobs) and torch.get_num_threads() == 3


CPU = torch.device("cpu")


@pytest.mark.parametrize(("name", "half"), [("fp32", False), ("bf16", True), ("auto", False)])
def test_the_precision_of_a_step_on_a_cpu(name, half):
    assert isinstance(precision(name, CPU), torch.autocast) is half
    with precision(name, CPU):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == (torch.bfloat16 if half else torch.float32)
