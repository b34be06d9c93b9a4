"""Records that a feature store cannot save are refused with the key of the image."""

import numpy as np
import pytest
from kit.stores import FINGERPRINT, record

from mmgen.errors import DataError
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.full((3, 4), np.nan)}, "image 'b': features are not finite (NaN or infinite)"),
        (
            {"features": np.full((3, 4), 1e6)},
            "image 'b': a feature of 1e+06 is too large for float16; store the features as float32",
        ),
    ],
)
def test_refused_records(tmp_path, changes, message):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer:
        writer.add(record("a"))
        with pytest.raises(DataError) as error:
            writer.add(record("b", **changes))
        assert str(error.value) == message
        writer.finish()
    assert list(FeatureStore(tmp_path / "s.h5")) == ["a"]
