"""The device of these tests: a GPU, or the device of `--device`. Without a GPU they are skipped."""

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cuda", help="cuda, or cpu for a stand-in")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    """The device; TF32 is off, so that fp32 is exact."""
    chosen = torch.device(request.config.getoption("--device", "cuda"))
    if chosen.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    assert torch.get_float32_matmul_precision() == "highest"
    return chosen
