"""What the suites share: tests that cannot be overridden, and failures that say what is wrong and what to read."""

from __future__ import annotations

import json
import unittest
from typing import Any

import torch
from torch import Tensor

from ..configs import PartConfig

TOLERANCE = 1e-4  # float32 sums in another order differ by less


class Suite:
    """Checks of one part. A subclass names the part in `config`; it may add tests, but not replace any here."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls):
            owner = next((parent for parent in cls.__mro__[1:] if name in vars(parent)), None)
            if name.startswith("test_") and owner is not None:
                raise TypeError(
                    f"{cls.__name__}.{name} replaces a test of {owner.__name__}; mend the part instead, or add a test "
                    "under another name"
                )

    def config(self) -> PartConfig:
        """The config of the part under test; asked for before every test."""
        raise NotImplementedError(
            f"{type(self).__name__} must define config(), which returns the config of the part to test"
        )

    def seeded(self, build: Any, *arguments: Any, **options: Any) -> Any:
        """`build(...)` with random weights that are the same every time."""
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return build(*arguments, **options)

    def test_config_survives_json(self) -> None:
        config = self.config()
        again = type(config).model_validate_json(config.model_dump_json())
        expect(
            again == config,
            f"{type(config).__name__} comes back from JSON changed; a run folder keeps it as JSON",
            "mmgen.configs",
        )

    def test_every_field_is_described(self) -> None:
        config = type(self.config())
        silent = [name for name, info in config.model_fields.items() if name != "type" and not info.description]
        expect(
            not silent,
            f"fields without a description: {', '.join(silent)}; write Field(..., description=...)",
            "mmgen.configs",
        )
        expect(
            bool((config.__doc__ or "").strip()),
            f"{config.__name__} has no docstring; its first line is shown by `mmgen plugins`",
            "mmgen.configs",
        )


def expect(holds: Any, wrong: str, read: str) -> None:
    """Fail with what is wrong and what to read, unless it holds."""
    if not holds:
        raise AssertionError(f"{wrong}. Read: {read}")


def expect_equal(first: Tensor, second: Tensor, wrong: str, read: str, tolerance: float = TOLERANCE) -> None:
    """Fail unless two tensors of one shape are equal but for rounding."""
    expect(first.shape == second.shape, f"{wrong} (shapes {tuple(first.shape)} and {tuple(second.shape)})", read)
    expect(
        bool(torch.isfinite(first).all() and torch.isfinite(second).all()),
        f"{wrong} (there are numbers that are not finite)",
        read,
    )
    difference = (first.float() - second.float()).abs().max().item() if first.numel() else 0.0
    expect(difference <= tolerance, f"{wrong} (by up to {difference:.2g})", read)


def expect_json(value: Any, what: str, read: str) -> None:
    try:
        json.dumps(value)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{what} cannot be written as JSON: {error}. Read: {read}") from None


def skip(reason: str) -> None:
    """Leave a test out; pytest shows it as skipped."""
    raise unittest.SkipTest(reason)


def failures(suite: type[Suite]) -> dict[str, str]:
    """Run a suite without pytest: test name -> what is wrong, for those that fail."""
    found = {}
    for name in dir(suite):
        if name.startswith("test_"):
            try:
                getattr(suite(), name)()
            except unittest.SkipTest:
                continue
            except Exception as error:  # a broken part may raise anything
                found[name] = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return found
