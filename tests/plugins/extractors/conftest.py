"""Pictures for detectors; files of a tiny Faster R-CNN, and the settings for its small maps."""

import numpy as np
import pytest
from kit import frcnn
from PIL import Image

from mmgen.parts import Picture


@pytest.fixture(scope="session")
def pictures():
    rng = np.random.default_rng(0)
    sizes = [(60, 80), (80, 60), (60, 80)]
    arrays = [rng.integers(0, 255, (*size, 3), dtype=np.uint8) for size in sizes]
    return [Picture(str(number), lambda array=array: Image.fromarray(array)) for number, array in enumerate(arrays)]


@pytest.fixture(autouse=True, scope="module")
def small_settings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgen_extractors.visual_genome.SETTINGS", frcnn.SETTINGS)
        yield


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return frcnn.published(tmp_path_factory.mktemp("frcnn") / "published")
