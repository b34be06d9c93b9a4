"""What the suites share: tests that cannot be overridden, and failures that say what is wrong and what to read."""

from __future__ import annotations

import json
import unittest
from collections.abc import Mapping
from typing import Any, Generic, NoReturn, TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor

from ..configs import PartConfig, nested_kinds
from ..errors import PluginError
from ..parts import Part
from ..registry import installed
from ..tensors import Batch
from .registration import distribution, entry_point, import_problem, unregistered

TOLERANCE = 1e-4  # float32 sums in another order differ by less

Tried = TypeVar("Tried", bound=PartConfig)  # the config class of a kind


class Suite(Generic[Tried]):
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

    def config(self) -> Tried:
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
        try:
            again = from_json(config)
        except ValidationError as error:
            wrong = error.errors()[0]
            raise AssertionError(
                f"{type(config).__name__} does not come back from JSON: {'.'.join(map(str, wrong['loc']))}: "
                f"{wrong['msg']}; a run folder keeps it as JSON. Read: mmgen.configs"
            ) from None
        changed = [name for name in type(config).model_fields if getattr(again, name) != getattr(config, name)]
        expect(
            again == config,
            f"{type(config).__name__} comes back from JSON changed ({', '.join(changed) or 'it has no equality'}); a "
            "run folder keeps it as JSON; a field that holds another part must be SerializeAsAny[...]",
            "mmgen.configs",
        )

    def test_registered(self) -> None:
        """The entry point of its package loads, and gives this config under a name of its own."""
        config = type(self.config())
        entry = entry_point(config)
        if entry is None:
            package, owner = config.__module__.partition(".")[0], distribution(config)
            if owner is None or package == "mmgen":  # a class of a test, or a fake
                skip(f"{package} is no installed package")
            fail(
                f"{owner} has no entry point for {package}, so no recipe can name {config.__name__}; write "
                f'[project.entry-points.mmgen] and {package.removeprefix("mmgen_")} = "{package}" into its '
                "pyproject.toml, and install it again",
                "docs/plugins.md",
            )
        wrong = unregistered(config, entry)
        expect(not wrong, wrong, "mmgen.hookspecs")

    def test_importing_imports_no_torch(self) -> None:
        """In a process of its own."""
        entry = entry_point(type(self.config()))
        if entry is None:
            skip("no entry point names its package")
        wrong = import_problem(entry.module)
        expect(not wrong, wrong, "mmgen.hookspecs")

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


def from_json(config: PartConfig) -> PartConfig:
    """What a run makes of a config that it keeps as JSON. Parts inside it are found by their `type`."""
    return _again(config, type(config), json.loads(config.model_dump_json()))


def _again(config: PartConfig, cls: type[PartConfig], table: dict[str, Any]) -> PartConfig:
    nested = {name: getattr(config, name, None) for name in nested_kinds(cls)}
    parts = {}
    for name, inner in nested.items():
        if isinstance(inner, PartConfig):
            try:
                found = installed().get(inner.kind, inner.type).config
            except PluginError:  # a part of a test, which nobody has registered
                found = type(inner)
            parts[name] = _again(inner, found, table[name])
    return cls.model_validate({**table, **parts}) if parts else cls.model_validate_json(json.dumps(table))


def sixty_updates(model: Any, batch: Batch) -> list[float]:
    """A model's losses while it learns one batch by heart; the gradients of the last update stay."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(60):
        loss = model(batch).mean
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses


def expect(holds: Any, wrong: str, read: str) -> None:
    """Fail with what is wrong and what to read, unless it holds."""
    if not holds:
        fail(wrong, read)


def fail(wrong: str, read: str) -> NoReturn:
    """Fail with what is wrong and what to read."""
    raise AssertionError(f"{wrong}. Read: {read}")


def expect_published(part: Part) -> None:
    """Fail unless a part takes nothing of weights that are nobody's, without stumbling over them."""
    read = "mmgen.parts.Part.published"
    try:
        given = part.published({"of.nobody.weight": torch.ones(3, 2), "of.nobody.bias": torch.ones(3)})
    except Exception as error:  # of any kind: the part is under test
        fail(f"published raises {type(error).__name__} ({error}) of weights that lack its names; look with `in`", read)
    expect(isinstance(given, Mapping), f"published gives a {type(given).__name__}, not a mapping", read)
    expect(
        not given,
        f"published takes weights that are nobody's ({', '.join(given)}); it must give an empty mapping",
        read,
    )


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


def skip(reason: str) -> NoReturn:
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
