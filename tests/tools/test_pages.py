"""The reference pages of docs/ are up to date and complete."""

import inspect
import re
import sys
import tomllib
from pathlib import Path

import click
import pydantic
import pytest
from packaging.version import Version

from mmgen import testing
from mmgen.cli import main
from tools import pages

ROOT = Path(__file__).resolve().parents[2]
IMPORTED = ("keys", "commands")  # their words come from pydantic and click


@pytest.mark.parametrize("path", pages.pages(), ids=lambda path: path.stem)
def test_the_page_is_what_the_code_gives(path):
    if path.stem in IMPORTED and Version(pydantic.VERSION) < Version("2.12"):
        pytest.skip("older versions of pydantic and click describe keys and options in other words")
    same = path.read_text(encoding="utf-8") == pages.written(path)
    assert same, f"docs/{path.name} is out of date; python -m tools.pages --write"


def test_every_reference_has_its_page():
    assert {path.stem for path in pages.pages()} == set(pages.REFERENCES)


def test_a_page_that_is_out_of_date_is_named_and_written(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "suites.md").write_text("# By hand\n\n<!-- written by python -m tools.pages: suites -->\n\nold\n")
    (folder / "other.md").write_text("# No reference\n")
    monkeypatch.setattr(pages, "DOCS", folder)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    monkeypatch.setitem(pages.REFERENCES, "suites", lambda: "\nnew\n")

    def ran(*arguments: str) -> tuple[object, str]:
        monkeypatch.setattr(sys, "argv", ["pages", *arguments])
        with pytest.raises(SystemExit) as ended:
            pages.main()
        return ended.value.code, capsys.readouterr().out

    assert ran() == (True, "docs/suites.md: out of date; python -m tools.pages --write\n")
    assert ran("--write") == (False, "docs/suites.md: written\n")
    written = "# By hand\n\n<!-- written by python -m tools.pages: suites -->\n\nnew\n"
    assert (folder / "suites.md").read_text() == written
    assert ran() == (False, "")


def test_the_page_of_suites_has_all_that_testing_offers():
    homes = {getattr(testing, name).__module__ for name in testing.__all__ if inspect.isclass(getattr(testing, name))}
    assert homes <= {f"mmgen.testing.{name}" for name in pages.SUITE_MODULES.split()}


def test_the_pages_of_modules_have_the_public_ones():
    house = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mmgen"]
    for tier in ("parts", "scripts"):
        page = pages.public(tier)
        for name in set(house[tier]) - {"testing"}:
            assert f"`mmgen.{name}`" in page and re.search(rf"^## mmgen\.{name}\b", page, re.MULTILINE), name


def test_a_module_is_its_constants_functions_and_classes(tmp_path, monkeypatch):
    (tmp_path / "mmgen").mkdir()
    (tmp_path / "mmgen/sounds.py").write_text(SOUNDS)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    assert pages.module("sounds") == SHOWN


SOUNDS = '''"""Sounds."""

RATE = 16_000
"""Samples a second."""

QUIET = 0


class Sound(Protocol):
    """A sound.

    wave   (N,) of it
    rate   samples a second
    """

    wave: Tensor  # (N,)
    _cache: int
    rate: int = 16_000

    def __init__(self, wave: Tensor) -> None: ...

    def __call__(self) -> None:
        """Plays it."""

    @property
    def seconds(self) -> float:
        """Its length."""

    def loud(self, by: float = 1.0, *, times=2, **more: int) -> Sound:
        """Louder [b|c]:

            sound.loud(2)

        A *copy*."""

    def test_it_sounds(self): ...

    def plain(self): ...


def read(path, /) -> Sound:
    """Reads `a*b`."""


def _hidden():
    """Nothing."""
'''
SHOWN = """## mmgen.sounds

Sounds.

- `RATE = 16000`

  Samples a second.

- `read(path) -> Sound`

  Reads `a*b`.

### Sound

`class Sound(Protocol)`

`Sound(wave: Tensor)`

A sound.

```text
wave   (N,) of it
rate   samples a second
```

```python
wave: Tensor  # (N,)
rate: int = 16_000
```

- `__call__() -> None`

  Plays it.

- `seconds: float`

  Its length.

- `loud(by: float = 1.0, *, times=2, **more: int) -> Sound`

  Louder \\[b|c]:

  ```text
  sound.loud(2)
  ```

  A \\*copy\\*.

Checks: `test_it_sounds`."""


def test_the_page_of_commands_has_each_with_its_options():
    page = pages.commands()
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        below = getattr(command, "commands", {})
        for path, inner in ((f"mmgen {name}", command), *((f"mmgen {name} {key}", below[key]) for key in below)):
            assert re.search(rf"^##+ {path}$", page, re.MULTILINE)
            section = re.split(rf"^##+ {path}$", page, flags=re.MULTILINE)[1]
            for option in (option for option in inner.params if getattr(option, "help", None)):
                assert option.opts[0] in section.split("\n## ")[0], f"{path} {option.opts[0]}"


def test_tables_of_options_keep_their_columns():
    rows = [line for line in pages.commands().split("\n") if line.startswith("|")]
    assert any(r"[image\|question]" in row for row in rows)
    assert [row for row in rows if len(re.split(r"(?<!\\)\|", row)) != 4] == []


def test_the_page_of_examples_has_every_recipe_and_no_link_into_nowhere():
    page = pages.examples()
    recipes = [path for path in ROOT.glob("examples/*/*.toml") if path.name != "pyproject.toml"]
    assert page.count("```toml") == len(recipes) >= 3 and "](../" not in page and "](mmgen" not in page
