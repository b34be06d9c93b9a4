"""The registry: plugins found and imported, their parts, those that failed, lookup by name.

`installed()` reads the entry points and returns a frozen registry; tests build theirs with `collect`. A plugin that
fails is recorded with its reason and never stops another. A plugin can also be a file: `load_files` executes it, which
only happens to files that a person has named.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
import traceback
import typing
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from . import API_VERSION, __version__
from .configs import PartConfig
from .errors import PluginError, did_you_mean
from .hookspecs import GROUP, KINDS

OURS = "mmgen-framework"  # our distribution. Its version is mmgen.__version__: metadata found first may be another's
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z`\[])")


@dataclass(frozen=True)
class Source:
    """The source of a plugin: the name of its entry point, its distribution, and the distribution's version. Of a file:
    the name of its module, the file's name, and a digest of its content."""

    plugin: str
    distribution: str
    version: str
    file: Path | None = None

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin, or one of its hooks, that failed."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"plugin '{self.source.plugin}' ({self.source}) failed to load: {self.reason}"


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

    def names(self, kind: str) -> dict[str, Part]:
        """The parts of a kind that recipes can use, by name. Names of several parts are left out."""
        return {name: parts[0] for name, parts in self.by_name(kind).items() if len(parts) == 1}

    def files(self, configs: Iterable[PartConfig] | None = None) -> dict[str, Path]:
        """The files that are plugins, by name; of these configs only."""
        classes = None if configs is None else {*map(type, configs)}
        return {
            part.source.distribution: part.source.file
            for part in self.parts
            if part.source.file and (classes is None or part.config in classes)
        }

    def conflicts(self) -> list[str]:
        """One line for every name that several parts have."""
        return [conflict(parts) for kind in KINDS for parts in self.by_name(kind).values() if len(parts) > 1]


def conflict(parts: list[Part]) -> str:
    """What is wrong with parts of one kind and name, and who can mend it."""
    owners = " and ".join(str(part.source) for part in parts)
    return f"the {parts[0].kind} '{parts[0].name}' is provided by {owners}; rename or uninstall all but one"


_loaded_files: dict[Path, tuple[Source, ModuleType]] = {}


def load_files(paths: Iterable[str | Path]) -> None:
    """Execute files that are plugins, each once, and add their parts to those that `installed` returns. A file may have
    hooks; without them, every config class that it defines is a part. Raises PluginError.

    Its folder is appended to the path of imports, so that worker processes find the file."""
    for path in map(Path, paths):
        real = path.resolve()
        if real in _loaded_files:
            continue
        if not real.is_file() or real.suffix != ".py" or not real.stem.isidentifier():
            raise PluginError(f"{path}: no such plugin; name a Python file, such as my_metric.py")
        sys.path.append(str(real.parent))
        importlib.invalidate_caches()
        spec = importlib.util.find_spec(real.stem)
        if spec is None or os.path.realpath(spec.origin or "") != str(real):
            raise PluginError(f"{path}: another module is called '{real.stem}'; rename the file")
        try:
            module = importlib.import_module(real.stem)
        except (Exception, SystemExit) as error:
            frames = reversed(traceback.extract_tb(error.__traceback__))
            line = next((f.lineno for f in frames if f.filename == spec.origin), getattr(error, "lineno", 1))
            raise PluginError(f"{path}:{line}: {reason(error)}") from None
        source = Source(real.stem, real.name, hashlib.sha256(real.read_bytes()).hexdigest()[:12], path)
        if broken := collect([(source, module)]).broken:
            del sys.modules[real.stem]  # a file that is mended can be loaded
            raise PluginError(f"{path}: {broken[0].reason}")
        vars(module)["MMGEN_FILE"] = str(path)  # for `errors.blame`
        _loaded_files[real] = source, module
        installed.cache_clear()


@contextlib.contextmanager
def forgotten_files() -> Iterator[None]:
    """What `load_files` executes inside the context is unknown after it."""
    known, places = {*_loaded_files}, [*sys.path]
    try:
        yield
    finally:
        for real in {*_loaded_files} - known:
            del sys.modules[_loaded_files.pop(real)[1].__name__]
            installed.cache_clear()
        sys.path[:] = places


@functools.cache
def installed(hook: str = "") -> Registry:
    """The parts of every installed distribution with an entry point in the group `mmgen`, and of loaded files; read
    once. `hook`: import only modules whose source names this hook, since to import all takes a third of a second."""
    loaded, broken = [*_loaded_files.values()], list[BrokenPlugin]()
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        assert entry.dist is not None  # only entry points built by hand have none
        source = Source(entry.name, *_distribution(entry.dist))
        try:
            spec = importlib.util.find_spec(entry.module) if hook else None
            if spec and spec.origin and hook not in Path(spec.origin).read_text(encoding="utf-8"):
                continue
            loaded.append((source, entry.load()))
        except (Exception, SystemExit) as error:  # whatever the import of a third party does, the other plugins load
            broken.append(BrokenPlugin(source, reason(error)))
    return collect(loaded, broken)


@functools.cache
def _distribution(distribution: Distribution) -> tuple[str, str]:
    """Name and version of a distribution. Its metadata are parsed once: ours has a dozen entry points."""
    name = distribution.name
    is_ours = re.sub(r"[-_.]+", "-", name).lower() == OURS  # names may be spelled in several ways
    return (OURS, __version__) if is_ours else (name, distribution.version)


def collect(plugins: Iterable[tuple[Source, ModuleType]], broken: Iterable[BrokenPlugin] = ()) -> Registry:
    """A registry of these modules."""
    outcomes = [outcome for source, module in plugins for outcome in _plugin_parts(source, module)]
    parts = tuple(outcome for outcome in outcomes if isinstance(outcome, Part))
    return Registry(parts, (*broken, *(outcome for outcome in outcomes if isinstance(outcome, BrokenPlugin))))


def reason(error: BaseException) -> str:
    """The first line of an error, with its class unless it is an ImportError."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _plugin_parts(source: Source, module: ModuleType) -> Iterator[Part | BrokenPlugin]:
    """The parts of one plugin. A mistake in one hook affects only this hook."""
    hooks = {name: hook for name, hook in vars(module).items() if name.startswith("register_")}
    kinds = {hook: base_class for hook, base_class in KINDS.values()}
    configs = _config_classes(module) if source.file and not hooks else []
    yield from (_checked(source, config, KINDS[config.kind][1]) for config in configs)
    if not hooks and not configs:
        yield BrokenPlugin(source, f"provides nothing: {module.__name__} has none of the hooks {', '.join(kinds)}")
    elif (required := getattr(module, "MMGEN_API", API_VERSION)) != API_VERSION:
        wrong = f"requires version {required!r} of the plugin contract, but this mmgen has version {API_VERSION}"
        yield BrokenPlugin(source, f"{wrong}; update the older of the two (docs/extend/contracts.md)")
        return
    for name, hook in hooks.items():
        if name not in kinds:
            yield BrokenPlugin(source, f"unknown hook '{name}'{did_you_mean(name, kinds)}")
        elif not hasattr(hook, f"{GROUP}_impl"):
            yield BrokenPlugin(source, f"{name} is not decorated with @mmgen.hookimpl")
        else:
            try:
                yield from (_checked(source, config, kinds[name], f"{name}: ") for config in hook())
            except (Exception, SystemExit) as error:
                yield BrokenPlugin(source, f"{name}: {reason(error)}")


def _config_classes(module: ModuleType) -> list[type[PartConfig]]:
    """The config classes that a module defines; those whose names begin with an underscore are its own affair."""
    return [
        value
        for name, value in vars(module).items()
        if inspect.isclass(value) and issubclass(value, PartConfig) and hasattr(value, "kind")
        if value.__module__ == module.__name__ and not name.startswith("_")
    ]


def _checked(source: Source, config: Any, base_class: type[PartConfig], place: str = "") -> Part | BrokenPlugin:
    """The part of a config, which must be of this class. `place`: the beginning of an error."""
    if wrong := _config_problem(config, base_class):
        return BrokenPlugin(source, f"{place}{wrong}")
    return Part(base_class.kind, config.model_fields["type"].default, config, source)


def _config_problem(config: Any, base_class: type[PartConfig]) -> str:
    """Why what a hook returned is not the config of a part; empty if it is one."""
    if not (inspect.isclass(config) and issubclass(config, base_class)):
        return f"{getattr(config, '__name__', config)!r} is not a subclass of mmgen.{base_class.__name__}"
    name = config.model_fields["type"]
    if not name.default or typing.get_args(name.annotation) != (name.default,):
        return f'{config.__name__} needs one fixed name; write  type: Literal["..."] = "..."'
    if config.build is base_class.build:  # type: ignore[attr-defined]
        return f"{config.__name__} does not define build(), which creates the part"
    return ""
