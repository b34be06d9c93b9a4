"""The device that these tests run on: a GPU, or what `--device` names. Without a GPU they skip."""

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--device", default="cuda", help="cuda, or cpu for a stand-in")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> torch.device:
    """fp32 is fp32 here: no TF32."""
    chosen = torch.device(request.config.getoption("--device", "cuda"))
    if chosen.type == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    assert torch.get_float32_matmul_precision() == "highest"
    return chosen
