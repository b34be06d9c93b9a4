"""The device of these tests: a GPU, or that of `--device` for a rehearsal. Without a GPU they are skipped."""

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cuda", help="cuda, or cpu for a rehearsal")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    """The device; TF32 is off, so that fp32 is exact."""
    device = torch.device(request.config.getoption("--device", "cuda"))
    if device.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU, and torch finds none")
    assert torch.get_float32_matmul_precision() == "highest"
    return device
