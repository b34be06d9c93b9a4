"""Every thing of the module fills its square and has its colour."""

import pytest
from kit.scenes import assert_painted, painters
from mmgen_scenes import animals


@pytest.mark.parametrize("paint", painters(animals))
def test_a_thing_is_painted_in_its_colour(paint):
    assert_painted(paint)
