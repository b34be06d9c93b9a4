"""Files of a tiny network, and the settings for its small maps."""

import pytest
from kit import frcnn


@pytest.fixture(autouse=True, scope="module")
def small_settings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmgen_frcnn.extractor.SETTINGS", frcnn.SETTINGS)
        yield


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    return frcnn.published(tmp_path_factory.mktemp("frcnn") / "published")
