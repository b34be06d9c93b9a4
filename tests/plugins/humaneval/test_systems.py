"""Systems on a sheet: runs of one name, and runs that cannot be judged."""

import pytest
from kit.humaneval import write_run
from mmgen_humaneval.systems import gather

from mmgen import RunError
from mmgen.registry import installed

pytestmark = pytest.mark.slow


def test_runs_on_one_sheet_have_different_names(run, tmp_path):
    small, large = write_run(tmp_path / "small/seed-0"), write_run(tmp_path / "large/seed-0", texts="why?")
    assert list(gather([small, large], ("quaggastep",), installed()).texts) == [
        "small/quaggastep",
        "large/quaggastep",
    ]
    with pytest.raises(RunError) as error:
        gather([small, small], (), installed())
    assert str(error.value) == f"{small}: duplicate run; name each run once"
    smaller_test = write_run(tmp_path / "other", test_size=7)
    with pytest.raises(RunError) as error:
        gather([small, smaller_test], (), installed())
    assert (
        str(error.value)
        == f"{smaller_test}: its test examples differ from those of {small}; all systems of a sheet must share a test "
        "set"
    )


def test_a_link_to_itself_is_not_a_run(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RunError, match="^[^\n]*loop: no recipe.json in this folder; name a run folder"):
        gather([tmp_path / "loop"], (), installed())
