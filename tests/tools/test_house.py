"""The script that prints the figures of the house, on a small checkout; the summary in CONTRIBUTING.md is up to
date."""

from pathlib import Path

import pytest

from tools import house

OUT_OF_DATE = 0.05  # of the lines of core and plugins
MODULE = '''"""What it does."""

from typing import Any


class Numbers:
    rate: Any = 0.5

    def read(self, path: str, *rest: Any) -> list[Any]:
        if not path:
            raise ValueError(f"{path}: is empty")
        raise
'''
HEADER = (
    "| | files | lines | widest folder | files over 250 lines | functions over 40 | `Any` | errors with a text "
    "| without a test of the same name |"
)
SUMMARY = f"""\
{HEADER}
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| core | 3 | 314 | 2 | 1 | 1 | 2 | 1 | 0 |
| plugins | 2 | 1 | 2 | 0 | 0 | 0 | 0 | 1 |
| core and plugins | 5 | 315 | 2 | 1 | 1 | 2 | 1 | 1 |
| tests | 1 | 2 | 1 | 0 | 0 | 0 | 0 | 0 |
| tools | 0 | 0 | 0 | 0 | 0 | 0 | 0 | 0 |

Pages (html, css, js): 3 lines. Lines by room: top level 1, data 313.
Lines by plugin: mmgen_text 1.
`Any` by room: top level 0, data 2."""


@pytest.fixture
def checkout(tmp_path) -> Path:
    files = {
        "mmgen/__init__.py": '"""The core."""\n',
        "mmgen/data/__init__.py": MODULE,
        "mmgen/data/plan.py": "def plan():\n" + "    pass\n" * 300,
        "mmgen/data/page.css": "a\nb\nc\n",
        "plugins/mmgen_text/reader.py": '"""Texts."""\n',
        "plugins/mmgen_text/__init__.py": "",
        "tests/data/test_plan.py": "\n\n",
        "CONTRIBUTING.md": f"# House\n{house.BEGIN}\nold\n{house.END}\nmore\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_the_summary_counts_files_lines_and_what_stands_out(checkout):
    assert house.summary(checkout) == SUMMARY


def test_the_report_names_what_is_long(checkout):
    assert house.report(checkout).endswith(
        "Files over 250 lines: 1\n   301 mmgen/data/plan.py\n\n"
        "Functions over 40 lines: 1\n   301 mmgen/data/plan.py:1 plan\n\n"
        "Modules without a test of the same name: 1\n       plugins/mmgen_text/reader.py"
    )


def test_modules_are_listed_with_what_they_are_about(checkout):
    assert house.modules(checkout).splitlines() == [
        "mmgen/__init__.py: The core.",
        "mmgen/data/__init__.py: What it does.",
        "mmgen/data/plan.py: ",
        "plugins/mmgen_text/__init__.py: ",
        "plugins/mmgen_text/reader.py: Texts.",
    ]


def test_the_summary_is_written_between_its_marks(checkout):
    house.write(checkout)
    assert (checkout / "CONTRIBUTING.md").read_text() == f"# House\n{house.BEGIN}\n{SUMMARY}\n{house.END}\nmore\n"
    assert house.written(checkout)["core"] == 314 and house.written(checkout)["core and plugins"] == 315
    (checkout / "CONTRIBUTING.md").write_text("# House\n")
    with pytest.raises(ValueError, match="has no lines <!-- figures: begin --> and <!-- figures: end -->"):
        house.write(checkout)


@pytest.fixture(scope="module")
def measured():
    """The figures of core and plugins."""
    return house.total("core", house.rooms()), house.total("plugins", house.plugins())


@pytest.mark.slow
def test_contributing_has_figures_of_today(measured):
    written = house.written()
    for part in measured:
        assert abs(part.lines - written.get(part.name, 0)) <= OUT_OF_DATE * part.lines, (
            f"CONTRIBUTING.md says that {part.name} has {written.get(part.name, 0)} lines, and it has {part.lines}; "
            "run `python -m tools.house --write`"
        )


@pytest.mark.slow
def test_every_module_has_a_test_of_its_name(measured):
    for part in measured:
        assert not part.untested, (
            f"{part.name}: {part.untested} modules have no test file of their name; `python -m tools.house` lists "
            "them, and the tests of mmgen/ROOM/X.py belong in tests/ROOM/test_X.py"
        )
