"""What `mmgen info` says about a folder."""

import pytest
from kit import small_runs

from mmgen.errors import RunError
from mmgen.inference.describe import describe


def test_a_run():
    folder = small_runs.drawn("writes")
    *lines, answering = describe(folder).splitlines()
    assert answering.startswith("step 'both' answers unless another is named: the best by ")
    assert lines == [
        f"{folder}: a run of 'writes', profile default, seed 0",
        "| step  | reads             | gives | state    |",
        "|-------|-------------------|-------|----------|",
        "| words | caption           | text  | finished |",
        "| both  | image and caption | text  | finished |",
    ]


def test_another_folder(tmp_path):
    with pytest.raises(RunError) as error:
        describe(tmp_path)
    assert str(error.value).startswith(f"{tmp_path}: no recipe.json in this folder; ")
