"""The base of all suites: tests that cannot be overridden, and assertions that say what to do.

The few checks that a run makes too are the same functions (`mmgen.data.part_checks`, `mmgen.recipe.parse`), which raise
PluginError or RecipeError. The rest are plain assertions.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import inspect
import json
import sys
import unittest
from collections.abc import Callable, Iterator
from typing import Any, Generic, NoReturn, TypeVar
from unittest import mock

import torch
from torch import Tensor

from ..configs import PartConfig
from ..errors import DataError
from ..recipe.parse import Parts
from ..registry import KINDS, installed

TOLERANCE = 1e-4  # float32 sums in another order differ by less

Tried = TypeVar("Tried", bound=PartConfig)  # the config class of a kind
distributions = functools.cache(importlib.metadata.packages_distributions)  # by top-level package


class Suite(Generic[Tried]):
    """Checks of one part. A subclass returns the part's config in `config`; it may add tests, but not override any."""

    seed = 0  # of torch, for random weights and drawn texts

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in vars(cls):
            if name.startswith("test_") and hasattr(super(cls, cls), name):
                raise TypeError(
                    f"{cls.__name__}.{name} overrides a test of its suite; fix the part instead, or add a test under "
                    "another name"
                )

    def config(self) -> Tried:
        """The config of the part under test; called for every test."""
        raise NotImplementedError("define config(), which returns the config of the part to test")

    def buildable(self) -> Tried:
        """The config. Skips the test if its `build` takes other arguments than the contract's."""
        if build_problem(config := self.config()):
            skip("build takes other arguments")
        return config

    def seeded(self, build: Any, *arguments: Any, **options: Any) -> Any:
        """`build(...)` with random weights that are the same every time."""
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            return build(*arguments, **options)

    def test_build_takes_the_arguments_of_the_contract(self) -> None:
        assert not (problem := build_problem(self.config())), problem

    def test_config_survives_json(self) -> None:
        config = self.config()
        with explained("the config cannot be read from the JSON of a run folder"):
            restored = Parts(installed(), {}).read(type(config), config.model_dump(mode="json"))
        assert restored == config, (
            f"{config!r} changes to {restored!r} in the JSON of a run folder; a field with another part must be "
            "SerializeAsAny[...]"
        )

    def test_registered(self) -> None:
        """A recipe that names the part finds this config. Skipped for a class of a test, or a fake."""
        config = self.config()
        module = type(config).__module__
        if module.startswith("mmgen.") or module.partition(".")[0] not in distributions():
            skip("its package is not installed")
        with explained("no recipe can name it; give its package an entry point, and return it from a hook"):
            assert installed().get(config.kind, config.type).config is type(config)
        assert not (problem := import_problem(module)), problem

    def test_every_field_is_described(self) -> None:
        assert_described(type(self.config()))


@functools.cache
def import_problem(module: str) -> str:
    """What is wrong with the import of a plugin's module where there is no torch; empty if nothing is."""
    again = {
        name: found
        for name, found in sys.modules.items()
        if name.partition(".")[0] not in (module.partition(".")[0], "mmgen")
    }
    with mock.patch.dict(sys.modules, {**again, "torch": None}, clear=True):
        try:
            importlib.import_module(module)
        except Exception as error:
            return (
                f"importing {module} imports torch, which slows down every command; import torch inside build ({error})"
            )
    return ""


def build_problem(config: Any) -> str:
    """Why `build` of a config cannot be called as that of its base class; empty if it can."""
    names = [*inspect.signature(KINDS[config.kind][1].build).parameters][1:]  # type: ignore[attr-defined]
    try:
        inspect.signature(config.build).bind(**dict.fromkeys(names))
    except TypeError as error:
        return f"build must take the arguments ({', '.join(names)}) of the contract ({error})"
    return ""


def assert_described(config: type[Any]) -> None:
    """Fails if a config class or one of its fields says nothing about itself."""
    silent = [name for name, info in config.model_fields.items() if name != "type" and not info.description]
    assert not silent, f"fields without a description: {', '.join(silent)}; write Field(..., description=...)"
    assert config.__doc__, f"{config.__name__} has no docstring; its first line is shown by `mmgen plugins`"


@contextlib.contextmanager
def explained(message: str) -> Iterator[None]:
    """Wraps a call into the part under test: any exception fails the test with this message."""
    try:
        yield
    except Exception as error:
        raise AssertionError(f"{message} ({type(error).__name__}: {error})") from error


def assert_close(first: Tensor, second: Tensor, message: str, tolerance: float = TOLERANCE) -> None:
    """Fails unless two tensors of one shape are finite and equal up to rounding."""
    assert first.shape == second.shape, f"{message} (shapes {tuple(first.shape)} and {tuple(second.shape)})"
    difference = largest_difference(first, second)
    assert difference <= tolerance, f"{message} (by up to {difference:.2g})"


def largest_difference(first: Tensor, second: Tensor) -> float:
    """The largest difference of two tensors of one shape; NaN if a number is not finite."""
    return (first.float() - second.float()).abs().max().item() if first.numel() else 0.0


def assert_type(value: Any, expected: type[Any], what: str) -> None:
    """Fails unless a part returns an object of this class. `what`: the method, "forward"."""
    assert isinstance(value, expected), (
        f"{what} returns {value!r:.60}; expected a {expected.__module__}.{expected.__name__}"
    )


def assert_refused(what: str, call: Callable[[Any], Any], argument: Any, name: str) -> None:
    """Fails unless a call of a part raises a DataError that has this name. `what`: the start of the message."""
    try:
        result = repr(call(argument))
    except Exception as error:
        result = repr(error)
        if isinstance(error, DataError) and name in result:
            return
    raise AssertionError(f"{what} must raise a DataError that names '{name}', not give {result:.60}")


def assert_json(value: Any, name: str) -> None:
    """Fails unless a value can be written as JSON."""
    with explained(f"{name} cannot be written as JSON"):
        json.dumps(value, allow_nan=False)


def skip(reason: str) -> NoReturn:
    """Skips a test."""
    raise unittest.SkipTest(reason)
