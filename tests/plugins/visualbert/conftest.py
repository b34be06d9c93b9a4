"""Results of the original code, computed once by that code."""

import json
from types import SimpleNamespace

import pytest
from kit.oracles import ORACLES
from kit.visualbert import _split
from safetensors.torch import load_file


@pytest.fixture(scope="module")
def oracle():
    folder = ORACLES / "visualbert"
    return SimpleNamespace(
        sizes=json.loads((folder / "config.json").read_text()), **_split(load_file(folder / "original.safetensors"))
    )
