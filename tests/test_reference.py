"""The Sphinx extension that writes the reference (docs/_ext/reference.py). `sphinx -W` holds its links."""

import re

import reference


def test_a_module_is_its_constants_functions_and_classes(tmp_path, monkeypatch):
    (tmp_path / "mmgen").mkdir()
    (tmp_path / "mmgen/sounds.py").write_text(SOUNDS)
    monkeypatch.setattr(reference, "ROOT", tmp_path)
    assert reference.module("sounds") == SHOWN


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

- `read(path, /) -> Sound`

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

- `loud(by: float=1.0, *, times=2, **more: int) -> Sound`

  Louder \\[b|c]:

  ```text
  sound.loud(2)
  ```

  A \\*copy\\*.

Checks: `test_it_sounds`."""


def test_the_contract_has_what_is_not_protected():
    assert {"parts", "tensors", "features", "testing"} <= set(reference.public())
    assert not {"cli", "training", "runs", "recipe"} & set(reference.public())


def test_the_page_of_commands_has_options_in_columns():
    page = reference.commands()
    assert "\n## mmgen features\n" in page and "\n### mmgen features extract\n" in page
    rows = [line for line in page.splitlines() if line.startswith("|")]
    assert any(row.startswith("| `--shard ") for row in rows)
    assert [row for row in rows if len(re.split(r"(?<!\\)\|", row)) != 4] == []
