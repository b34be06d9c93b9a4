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
        ({"features": np.ones((3, 5))}, "image 'b': features have width 5, but those of earlier images have width 4"),
        ({"features": np.ones(3)}, "image 'b': features must have shape (regions, width), but got (3,)"),
        (
            {"boxes": np.ones((2, 4))},
            "image 'b': boxes of shape (2, 4) for 3 regions; expected four finite numbers per region",
        ),
        (
            {"boxes": np.array([[0.5, 0, 0.2, 1]] * 3)},
            "image 'b': a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1",
        ),
        ({"region_names": ("one",)}, "image 'b': got 1 region names for 3 regions"),
        (
            {"scores": np.full(3, np.inf)},
            "image 'b': scores of shape (3,) for 3 regions; expected a finite number per region",
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
