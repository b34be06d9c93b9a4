"""Pictures for detectors."""

import numpy as np
import pytest
from PIL import Image

from mmgen.parts import Picture


@pytest.fixture(scope="session")
def pictures():
    rng = np.random.default_rng(0)
    sizes = [(60, 80), (80, 60), (60, 80)]
    arrays = [rng.integers(0, 255, (*size, 3), dtype=np.uint8) for size in sizes]
    return [Picture(str(number), lambda array=array: Image.fromarray(array)) for number, array in enumerate(arrays)]
