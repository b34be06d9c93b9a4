"""An export as a predictor: it has no data."""

import pytest

from mmgen.errors import DataError
from mmgen.inference.load_export import NoData


def test_an_export_has_no_data():
    with pytest.raises(DataError) as error:
        NoData().build()
    assert str(error.value) == "an export has no data; name a recipe with data: --data RECIPE"
