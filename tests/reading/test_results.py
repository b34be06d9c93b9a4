"""Formats of result files: each of an installed metric can be read and written, and has its own name."""

import pytest

from mmgen.reading.results import ResultFiles


def test_a_format_reads_and_writes():
    class Silent(ResultFiles):
        name = "silent"

        def read(self, path, examples):
            return {}

    with pytest.raises(TypeError, match="write"):
        Silent()
