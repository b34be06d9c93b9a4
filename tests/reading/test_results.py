"""Formats of result files: each of an installed metric can be read and written, and has its own name."""

from collections import Counter

import pytest

from mmgen.reading.results import ResultFiles
from mmgen.registry import installed


def test_names_of_formats():
    metrics = [part.config for part in installed().parts if part.kind == "metric"]
    formats = {type(form): form for metric in metrics if (form := metric.result_files())}
    assert len(formats) >= 3 and all(isinstance(form, ResultFiles) for form in formats.values())
    assert max(Counter(form.name for form in formats.values()).values()) == 1


def test_a_format_reads_and_writes():
    class Silent(ResultFiles):
        name = "silent"

        def read(self, path, examples):
            return {}

    with pytest.raises(TypeError, match="write"):
        Silent()
