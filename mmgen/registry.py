"""The registry: parts collected from the hooks of plugins, failed plugins, lookup by name, calls that name the part.

Nothing here is global. `installed()` reads the entry points and returns a frozen registry; tests build theirs with
`collect`. A plugin that fails is recorded with its reason and never stops another. `mmgen.discovery` finds and imports
the plugins.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import os
import re
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Protocol, TypeVar

import pluggy

from . import API_VERSION, hookspecs
from .configs import PartConfig, classes_in
from .discovery.loading import OURS, BrokenPlugin, Source, calling, load, reason
from .discovery.version import version_problem
from .errors import DataError, MmgenError, PluginError, did_you_mean

Built = TypeVar("Built")
Form = TypeVar("Form", bound="Format")
SHOW_TRACEBACK = "MMGEN_TRACEBACK"  # environment variable
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`\[])")


def _kinds_of_hooks() -> dict[str, tuple[str, type[PartConfig]]]:
    """Every hook of `hookspecs`, by the kind of the configs that it returns."""
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("register_")}
    classes = {name: classes_in(typing.get_type_hints(hook)["return"])[0] for name, hook in hooks.items()}
    return {config.kind: (name, config) for name, config in classes.items()}


@dataclass(frozen=True)
class Part:
    """One part: something that a recipe can name, or a command."""

    kind: str
    name: str
    config: type[PartConfig]
    source: Source

    @property
    def place(self) -> str:
        """file:line of the config class."""
        try:
            return f"{inspect.getsourcefile(self.config)}:{inspect.getsourcelines(self.config)[1]}"
        except (OSError, TypeError):
            return self.config.__module__

    @property
    def summary(self) -> str:
        """The first sentence of the config's docstring, on one line."""
        paragraph = (inspect.getdoc(self.config) or "").partition("\n\n")[0]
        return SENTENCE_END.split(" ".join(paragraph.split()), maxsplit=1)[0]


@dataclass(frozen=True)
class Registry:
    """Parts by kind and name. Several parts of one name conflict, and looking that name up is an error."""

    parts: tuple[Part, ...]
    broken: tuple[BrokenPlugin, ...]

    def of_kind(self, kind: str) -> list[Part]:
        return sorted((part for part in self.parts if part.kind == kind), key=lambda part: part.name)

    def by_name(self, kind: str) -> dict[str, list[Part]]:
        """The parts of a kind by name, sorted; a list of several parts is a conflict."""
        return {name: list(parts) for name, parts in itertools.groupby(self.of_kind(kind), lambda part: part.name)}

    def get(self, kind: str, name: str) -> Part:
        """The one part of this kind and name. Raises PluginError: unknown (with did-you-mean, what is installed and
        what is broken), or provided twice."""
        by_name = self.by_name(kind)
        if parts := by_name.get(name):
            if len(parts) > 1:
                raise PluginError(conflict(parts))
            return parts[0]
        lines = [
            f"no {kind} is called '{name}'{did_you_mean(name, by_name)}",
            f"  installed {kind}s: {', '.join(by_name) or 'none'}",
            *(f"  {broken}" for broken in self.broken),
        ]
        raise PluginError("\n".join(lines))

    def owner(self, kind: str, part: object) -> str:
        """The name and source of a part (or of its config class) for messages: "regions, mmgen-framework 0.1"; the
        class without a plugin."""
        cls = part if isinstance(part, type) else type(part)
        package = cls.__module__.split(".")[0]
        near = [candidate for candidate in self.of_kind(kind) if candidate.config.__module__.split(".")[0] == package]
        matches = [candidate for candidate in near if candidate.config is cls] or near
        name = matches[0].name if len(matches) == 1 else cls.__name__
        return f"{name}, {matches[0].source}" if matches else name

    def names(self, kind: str) -> dict[str, Part]:
        """The parts of a kind that recipes can use, by name. Names of several parts are left out."""
        return {name: parts[0] for name, parts in self.by_name(kind).items() if len(parts) == 1}

    def conflicts(self) -> list[str]:
        """One line for every name that several parts have."""
        return [conflict(parts) for kind in KINDS for parts in self.by_name(kind).values() if len(parts) > 1]


@dataclass(frozen=True)
class Qualified:
    """The name of a part in messages: `name` and the package that registered the part. The package is looked up only
    when a message is written, since listing the installed parts takes longer than most calls into parts."""

    name: str
    kind: str
    part: object  # or its config class

    def __str__(self) -> str:
        return f"{self.name} ({installed().owner(self.kind, self.part)})"


@contextlib.contextmanager
def part_calls(part: Qualified, method: str) -> Iterator[None]:
    """Wraps a call into a part. An exception other than MmgenError becomes a PluginError with the part, the method, and
    the exception's type and text, or the package to install; a note has the place in the plugin. With
    MMGEN_TRACEBACK=1 the traceback is printed. Out-of-memory errors pass through, since smaller batches are tried
    then."""
    try:
        yield
    except MmgenError:
        raise
    except Exception as error:
        from .oom import out_of_memory  # imports torch

        if out_of_memory(error):
            raise
        if os.environ.get(SHOW_TRACEBACK):
            traceback.print_exception(error)
        text = " ".join(str(error).split())
        if "before Module.__init__() call" in text:
            text = f"{_failing_module_class(error)}.__init__ must call super().__init__() first"
        module = str(error.name or "mmgen").partition(".")[0] if isinstance(error, ModuleNotFoundError) else "mmgen"
        if module not in sys.modules and not module.startswith("mmgen"):
            advice = f"install the package that has it, for example: pip install {module}"
            raise PluginError(f"{part}: needs the module '{module}', which is not installed; {advice}") from error
        wrong = PluginError(f"{part}: {method} raises {type(error).__name__}{f': {text}' * bool(text)}")
        if place := _place_in_plugin(error, part):
            wrong.add_note(f"at {place} ({SHOW_TRACEBACK}=1 prints the traceback)")
        raise wrong from error


def built(config: PartConfig, build: Callable[[], Built], name: str = "") -> Built:
    """What `build`, a call of the config's `build`, gives. An exception, or anything but a part of the config's kind,
    becomes a PluginError that names the part. `name`: what the part is called in messages, by default its kind and
    `type`."""
    part = Qualified(name or f"{config.kind} '{config.type}'", config.kind, type(config))
    with part_calls(part, "build"):
        value = build()
    module, _, contract = KINDS[config.kind][1].build.__annotations__["return"].rpartition(".")  # type: ignore[attr-defined]
    expected = getattr(importlib.import_module(f"{__package__}.{module}"), contract)
    shown = f"{' '.join(repr(value).split()):.60}"
    if not isinstance(value, expected):
        raise PluginError(f"{part}: build returns {shown}; expected a mmgen.{module}.{contract}")
    if "reader" in expected.__annotations__ and not hasattr(value, "reader"):
        raise PluginError(f"{part}: build returns {shown} without a reader; set self.reader in __init__")
    return value


def _failing_module_class(error: Exception) -> str:
    """The class of the object that a method of torch's Module was called on last."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return type(frames[-1].f_locals.get("self")).__name__


def _place_in_plugin(error: Exception, part: Qualified) -> str:
    """file:line of the last frame in the part's package, or in any other plugin's; empty without such a frame."""
    cls = part.part if isinstance(part.part, type) else type(part.part)
    packages = {cls.__module__.split(".")[0], *(p.config.__module__.split(".")[0] for p in installed().parts)}
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__", "")).split("."), Path(frame.f_code.co_filename).name
        if module[0] in packages:
            place = f"{'/'.join([*(module if file == '__init__.py' else module[:-1]), file])}:{line}"
    return place


def conflict(parts: list[Part]) -> str:
    """What is wrong with parts of one kind and name, and who can mend it: of a name of mmgen's, the other's author."""
    owners = " and ".join(dict.fromkeys(str(part.source) for part in parts))
    if len({part.source.distribution for part in parts}) == 1:
        places = " and ".join(dict.fromkeys(part.place for part in parts))
        return f"{owners} provides the {parts[0].kind} '{parts[0].name}' {len(parts)} times ({places}); provide it once"
    others = [part for part in parts if part.source.distribution != OURS]
    if len(others) < len(parts):
        rivals = " and ".join(f"that of {part.source} ({part.place})" for part in others)
        return f"the {parts[0].kind} '{parts[0].name}' belongs to mmgen; the author must rename {rivals}"
    return f"two plugins provide the {parts[0].kind} '{parts[0].name}': {owners}; uninstall one of them"


class Format(Protocol):
    """What parts offer under a name for the option --as."""

    @property
    def name(self) -> str: ...


def find_format(kind: str, name: str, offers: Iterable[tuple[Part, Form]]) -> tuple[Part, Form]:
    """The format of this name, and a part that offers the format. `kind`: its kind in messages. Raises DataError for an
    unknown name, and PluginError for a name of several formats; parts that inherit a format from one class agree."""
    by_name: dict[str, dict[type, tuple[Part, Form]]] = {}
    for part, form in offers:
        by_name.setdefault(form.name, {})[type(form)] = part, form
    if name not in by_name:
        available = ", ".join(sorted(by_name)) or "none; install the package of a task"
        raise DataError(f"--as {name}: unknown {kind}{did_you_mean(name, by_name)}; available: {available}")
    matches = [*by_name[name].values()]
    if len(matches) > 1:
        raise PluginError(f"--as {name}: {conflict([replace(part, kind=kind, name=name) for part, _ in matches])}")
    return matches[0]


KINDS: Mapping[str, tuple[str, type[PartConfig]]] = MappingProxyType(_kinds_of_hooks())
"""Kind -> (hook that registers it, base class of its configs)."""


def installed() -> Registry:
    """The parts of every installed distribution with an entry point in the group `mmgen`."""
    return collect(*load(hookspecs.GROUP))


def collect(plugins: Iterable[tuple[Source, ModuleType]], broken: Iterable[BrokenPlugin] = ()) -> Registry:
    """A registry of these modules."""
    parts: list[Part] = []
    failures = list(broken)
    for source, module in plugins:
        known = isinstance(module, ModuleType)  # an entry point can name anything
        for outcome in _cached_parts(source, module) if known else _plugin_parts(source, module):
            if isinstance(outcome, Part):
                parts.append(outcome)
            else:
                failures.append(outcome)
    return Registry(tuple(parts), tuple(failures))


@functools.lru_cache(maxsize=64)
def _cached_parts(source: Source, module: ModuleType) -> tuple[Part | BrokenPlugin, ...]:
    """The parts of a module, cached: commands build several registries, and pluggy looks at every name."""
    return tuple(_plugin_parts(source, module))


def _plugin_parts(source: Source, module: ModuleType) -> Iterator[Part | BrokenPlugin]:
    """The parts of one plugin. Each plugin gets a separate manager, so that a mistake affects only this plugin."""
    if wrong := _not_a_plugin(source, module) or version_problem(getattr(module, "MMGEN_API", API_VERSION)):
        yield BrokenPlugin(source, wrong)
        return
    manager = pluggy.PluginManager(hookspecs.GROUP)
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module)
        manager.check_pending()
    except Exception as error:
        yield BrokenPlugin(source, _unknown_hook(error))
        return
    for name, function in vars(module).items():
        if (
            name.startswith("register_")
            and inspect.isfunction(function)
            and not hasattr(function, f"{hookspecs.GROUP}_impl")
        ):
            yield BrokenPlugin(source, f"{name} is not decorated with @mmgen.hookimpl")
    for kind, (hook, base_class) in KINDS.items():
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            try:
                with calling(source.named):
                    classes = list(implementation.function())
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                yield BrokenPlugin(source, f"{hook}: {reason(error)}")
                continue
            for config in classes:
                yield _check_config(source, kind, hook, base_class, config)


def _check_config(
    source: Source, kind: str, hook: str, base_class: type[PartConfig], config: object
) -> Part | BrokenPlugin:
    if not (inspect.isclass(config) and issubclass(config, base_class)):
        return BrokenPlugin(
            source, f"{hook}: {getattr(config, '__name__', config)!r} is not a subclass of mmgen.{base_class.__name__}"
        )
    type_field = config.model_fields["type"]
    name = type_field.default
    if not isinstance(name, str) or not name:
        return BrokenPlugin(source, f'{hook}: {config.__name__} has no name; write  type: Literal["..."] = "..."')
    if typing.get_args(type_field.annotation) != (name,):
        return BrokenPlugin(
            source,
            f'{hook}: {config.__name__} needs one fixed name; write  type: Literal["{name}"] = "{name}"',
        )
    if getattr(config, "build", None) is getattr(base_class, "build", None):
        return BrokenPlugin(source, f"{hook}: {config.__name__} does not define build(), which creates the part")
    if expected := _expected_signature(config, base_class):
        return BrokenPlugin(source, f"{hook}: {config.__name__}.build must be callable as {expected}")
    return Part(kind, name, config, source)


def _expected_signature(config: type[PartConfig], base_class: type[PartConfig]) -> str:
    """How `build` of a config is called, if it cannot be called so; empty if it can. Parameters with a default are
    given by name."""
    parameters = [*inspect.signature(base_class.build).parameters.values()][1:]  # type: ignore[attr-defined]
    names = [p.name for p in parameters if p.default is p.empty]
    keywords = {p.name: p.default for p in parameters if p.default is not p.empty}
    build = inspect.getattr_static(config, "build")
    bound = build.__get__(object(), config) if hasattr(build, "__get__") else build
    try:
        inspect.signature(bound).bind(*names, **keywords)
    except (TypeError, ValueError):  # also for what is not callable, and for a method without self
        return f"build({', '.join([*names, *(f'{name}={default}' for name, default in keywords.items())])})"
    return ""


def _not_a_plugin(source: Source, module: object) -> str:
    """Why a module is not a plugin; empty if it is one."""
    if not isinstance(module, ModuleType):
        return f'the entry point must name a module, but names {module!r}; write  {source.plugin} = "PACKAGE"'
    if not any(name.startswith("register_") for name in vars(module)):
        hooks = ", ".join(hook for hook, _ in KINDS.values())
        return f"provides nothing: {module.__name__} has none of the hooks {hooks}"
    return ""


def _unknown_hook(error: Exception) -> str:
    """The message about a hook that does not exist, instead of pluggy's."""
    text = reason(error)
    if "unknown hook" in text:
        hook = text.split("unknown hook ")[1].split("'")[1]
        return f"unknown hook '{hook}'{did_you_mean(hook, [hook for hook, _ in KINDS.values()])}"
    return text
