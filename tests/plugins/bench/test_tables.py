"""Tables of measurements."""

import pytest

pytestmark = pytest.mark.slow
