"""The base of all suites: tests that cannot be overridden, and assertions that say what to do.

The few checks that a run makes too are the same functions (`mmgen.data.part_checks`, `mmgen.sequence`,
`mmgen.recipe.load`), which raise PluginError or RecipeError. The rest are plain assertions.
"""

from __future__ import annotations

import contextlib
import json
import unittest
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NoReturn, TypeVar

import torch
from torch import Tensor

from .. import registry
from ..configs import PartConfig
from ..errors import DataError, MmgenError
from ..parts import Part
from ..recipe.load import part_from
from ..recipe.tables import parts_in
from ..registry import Registry, Source
from .registration import distribution, entry_point, import_problem, registration_problem

TOLERANCE = 1e-4  # float32 sums in another order differ by less

Tried = TypeVar("Tried", bound=PartConfig)  # the config class of a kind


class Suite(Generic[Tried]):
    """Checks of one part. A subclass returns the part's config in `config`; it may add tests, but not override any."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls):
            owner = next((parent for parent in cls.__mro__[1:] if name in vars(parent)), None)
            if name.startswith("test_") and owner is not None:
                raise TypeError(
                    f"{cls.__name__}.{name} overrides a test of {owner.__name__}; fix the part instead, or add a test "
                    "under another name"
                )

    def config(self) -> Tried:
        """The config of the part under test; called for every test."""
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
        name = type(config).__name__
        values, source = json.loads(config.model_dump_json()), f"JSON of a {name} in a run folder"
        restored = part_from(type(config), config.type, (), _make_registry(config), values=values, source=source)
        changed = [field for field in type(config).model_fields if getattr(restored, field) != getattr(config, field)]
        assert restored == config, (
            f"{name} changes when read from the JSON of a run folder ({', '.join(changed) or 'no equality'}); "
            "a field with another part must be SerializeAsAny[...]"
        )

    def test_registered(self) -> None:
        """The entry point of the part's package loads and gives this config under a unique name."""
        config = type(self.config())
        entry = entry_point(config)
        if entry is None:
            package, owner = config.__module__.partition(".")[0], distribution(config)
            if owner is None or package == "mmgen":  # a class of a test, or a fake
                skip(f"{package} is not an installed package")
            raise AssertionError(
                f"{owner} has no entry point for {package}, so no recipe can name {config.__name__}; write "
                f'[project.entry-points.mmgen] and {package.removeprefix("mmgen_")} = "{package}" into its '
                "pyproject.toml, and install it again"
            )
        problem = registration_problem(config, entry)
        assert not problem, problem

    def test_importing_imports_no_torch(self) -> None:
        """In a new process."""
        entry = entry_point(type(self.config()))
        if entry is None:
            skip("no entry point names its package")
        problem = import_problem(entry.module)
        assert not problem, problem

    def test_every_field_is_described(self) -> None:
        config = type(self.config())
        silent = [name for name, info in config.model_fields.items() if name != "type" and not info.description]
        assert not silent, f"fields without a description: {', '.join(silent)}; write Field(..., description=...)"
        described = bool((config.__doc__ or "").strip())
        assert described, f"{config.__name__} has no docstring; its first line is shown by `mmgen plugins`"


def _make_registry(config: PartConfig) -> Registry:
    """A registry of a config and the parts in it, which need not be installed."""
    source = Source("suite", "suite", "")
    parts = {
        (part.kind, part.type): registry.Part(part.kind, part.type, type(part), source) for part in parts_in(config)
    }
    return Registry(tuple(parts.values()), ())


@contextlib.contextmanager
def explained(message: str) -> Iterator[None]:
    """Wraps a call into the part under test: any exception fails the test with this message."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{message} ({type(error).__name__}: {error})") from error


def assert_published(part: Part) -> None:
    """Fails unless a part ignores weights with unknown names."""
    with explained("published fails on weights without its names; test names with `in`"):
        taken = part.published({"of.nobody.weight": torch.ones(3, 2), "of.nobody.bias": torch.ones(3)})
    assert_tensors("published returns", taken)
    assert not taken, f"published takes weights with unknown names ({', '.join(taken)}); expected an empty mapping"


def assert_tensors(what: str, tensors: object) -> None:
    """Fails unless a part gives named tensors. `what`: the start of the message, "published returns"."""
    assert isinstance(tensors, Mapping), f"{what} a {type(tensors).__name__}, not a mapping of names to tensors"
    for name, tensor in tensors.items():
        assert isinstance(tensor, Tensor), f"{what} '{name}' as a {type(tensor).__name__}, not as a tensor"


def assert_close(first: Tensor, second: Tensor, message: str, tolerance: float = TOLERANCE) -> None:
    """Fails unless two tensors of one shape are finite and equal up to rounding."""
    assert first.shape == second.shape, f"{message} (shapes {tuple(first.shape)} and {tuple(second.shape)})"
    assert first.isfinite().all() and second.isfinite().all(), f"{message} (not all numbers are finite)"
    difference = (first.float() - second.float()).abs().max().item() if first.numel() else 0.0
    assert difference <= tolerance, f"{message} (by up to {difference:.2g})"


def assert_refused(call: Callable[[], Any], name: str, message: str) -> None:
    """Fails with this message unless the call raises a DataError with this name."""
    try:
        call()
    except DataError as error:
        assert name in str(error), f"{message} (message: '{error}')"
    except Exception as error:
        raise AssertionError(f"{message} (raises {type(error).__name__}: {error})") from error
    else:
        raise AssertionError(f"{message} (raises nothing)")


def assert_json(value: Any, name: str) -> None:
    """Fails unless a value can be written as JSON."""
    with explained(f"{name} cannot be written as JSON"):
        json.dumps(value, allow_nan=False)


def skip(reason: str) -> NoReturn:
    """Skips a test."""
    raise unittest.SkipTest(reason)


def failures(suite: type[Suite]) -> dict[str, str]:
    """Runs a suite without pytest: test name -> message, for the tests that fail."""
    messages = {}
    for name in dir(suite):
        if name.startswith("test_"):
            try:
                getattr(suite(), name)()
            except unittest.SkipTest:
                continue
            except Exception as error:  # a broken part may raise anything
                has_message = isinstance(error, AssertionError | MmgenError)
                messages[name] = str(error) if has_message else f"{type(error).__name__}: {error}"
    return messages
