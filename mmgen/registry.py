"""What is installed: every part that a plugin provides, who provides it, and which plugins failed and why.

Nothing here is global. `installed()` reads the entry points and returns a frozen registry; tests make their own with
`collect`. A plugin that fails is recorded with its reason and never stops another.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType, ModuleType

import pluggy

from . import API_VERSION, hookspecs
from .configs import PartConfig, classes_in
from .errors import PluginError, did_you_mean

CHANGED = (
    "modules and classes have other names since 2 (mmgen.store is mmgen.features.store): see 'From 1 to 2' in "
    "docs/plugins.md, then write MMGEN_API = 2"
)


def _kinds() -> dict[str, tuple[str, type[PartConfig]]]:
    """Every hook of `hookspecs`, by the kind of the configs that it returns."""
    hooks = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("register_")}
    classes = {name: classes_in(typing.get_type_hints(hook)["return"])[0] for name, hook in hooks.items()}
    return {config.kind: (name, config) for name, config in classes.items()}


@dataclass(frozen=True)
class Source:
    """Where a plugin comes from: its entry point's name, its distribution and that one's version."""

    plugin: str
    distribution: str
    version: str

    def owns(self, name: str) -> bool:
        """Whether a distribution's name is this one's; case, "-", "_" and "." make no difference."""
        return re.sub(r"[-_.]+", "-", name).lower() == re.sub(r"[-_.]+", "-", self.distribution).lower()

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@dataclass(frozen=True)
class Part:
    """One part: what a recipe can name, or a command."""

    kind: str
    name: str
    config: type[PartConfig]
    source: Source

    @property
    def owned(self) -> str:
        """Its name with its owner's, which no other part has."""
        return f"{self.source.distribution}:{self.name}"

    @property
    def place(self) -> str:
        """file:line of the config class."""
        try:
            return f"{inspect.getsourcefile(self.config)}:{inspect.getsourcelines(self.config)[1]}"
        except (OSError, TypeError):
            return self.config.__module__

    @property
    def summary(self) -> str:
        """The first line of the config's docstring."""
        return (inspect.getdoc(self.config) or "").partition("\n")[0]


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin, or one of its hooks, that failed."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"plugin '{self.source.plugin}' ({self.source}) failed to load: {self.reason}"


@dataclass(frozen=True)
class Registry:
    """Parts by kind and name. More than one part under a name is a conflict, and an error once that name is wanted."""

    parts: tuple[Part, ...]
    broken: tuple[BrokenPlugin, ...]

    def of_kind(self, kind: str) -> list[Part]:
        return sorted((part for part in self.parts if part.kind == kind), key=lambda part: part.name)

    def get(self, kind: str, name: str) -> Part:
        """The one part of this kind and name, or of its owner ("mmgen-boxes:regions", the distribution first). Raises
        PluginError: unknown (with did-you-mean, what is installed and what is broken), or provided twice."""
        owner, _, plain = name.rpartition(":")
        namesakes = [part for part in self.of_kind(kind) if part.name == plain]
        found = [part for part in namesakes if not owner or part.source.owns(owner)]
        if len(found) == 1:
            return found[0]
        if found:
            raise PluginError(conflict(found))
        if namesakes:
            owners = ", ".join(dict.fromkeys(part.owned for part in namesakes))
            raise PluginError(f"{owner} provides no {kind} '{plain}'; there is: {owners}")
        names = sorted({part.name for part in self.of_kind(kind)})
        lines = [
            f"no {kind} is called '{name}'{did_you_mean(name, names)}",
            f"  installed {kind}s: {', '.join(names) or 'none'}",
            *(f"  {broken}" for broken in self.broken),
        ]
        raise PluginError("\n".join(lines))

    def owner(self, kind: str, part: object) -> str:
        """Whose a part (or its config class) is, for people: "regions, mmgen-framework 0.1"; without a plugin, its
        class."""
        cls = part if isinstance(part, type) else type(part)
        package = cls.__module__.split(".")[0]
        near = [one for one in self.of_kind(kind) if one.config.__module__.split(".")[0] == package]
        own = [one for one in near if one.config is cls] or near
        name = own[0].name if len(own) == 1 else cls.__name__
        return f"{name}, {own[0].source}" if own else name

    def names(self, kind: str) -> dict[str, Part]:
        """What parts of a kind are called in recipes: by their names, or with their owner where two have one name."""
        count = Counter(part.name for part in self.of_kind(kind))
        return {part.name if count[part.name] == 1 else part.owned: part for part in self.of_kind(kind)}

    def conflicts(self) -> list[str]:
        keys: dict[tuple[str, str], list[Part]] = {(part.kind, part.name): [] for part in self.parts}
        for part in self.parts:
            keys[part.kind, part.name].append(part)
        return [conflict(parts) for parts in keys.values() if len(parts) > 1]


def conflict(parts: list[Part]) -> str:
    owners = " and ".join(dict.fromkeys(str(part.source) for part in parts))
    if len({part.source.distribution for part in parts}) == 1:
        places = " and ".join(dict.fromkeys(part.place for part in parts))
        return f"{owners} provides the {parts[0].kind} '{parts[0].name}' {len(parts)} times ({places}); it must be one"
    cure = f', or say whose, like type = "{parts[0].owned}"' if parts[0].config.in_recipes else ""
    return f"two plugins provide the {parts[0].kind} '{parts[0].name}': {owners}; uninstall one of them{cure}"


KINDS: Mapping[str, tuple[str, type[PartConfig]]] = MappingProxyType(_kinds())
"""Kind -> the hook that registers it, the class that its configs are of."""


def installed() -> Registry:
    """The parts of every installed distribution with an entry point in the group `mmgen`."""
    loaded, broken = [], []
    owners: dict[int, tuple[str, str]] = {}  # metadata is read once a distribution: ours has a dozen entry points
    for entry in sorted(importlib.metadata.entry_points(group=hookspecs.GROUP), key=lambda entry: entry.name):
        assert entry.dist is not None  # only entry points that somebody makes by hand have none
        if id(entry.dist) not in owners:
            about = entry.dist.metadata
            owners[id(entry.dist)] = (about["Name"], about["Version"])
        source = Source(entry.name, *owners[id(entry.dist)])
        try:
            with contextlib.redirect_stdout(sys.stderr):  # what we print may be read by a program
                loaded.append((source, entry.load()))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a stranger's import does, the others go on
            broken.append(BrokenPlugin(source, _other_version(_written_api(entry.module)) or reason(error)))
    return collect(loaded, broken)


def collect(plugins: Iterable[tuple[Source, ModuleType]], broken: Iterable[BrokenPlugin] = ()) -> Registry:
    """A registry of these modules."""
    parts: list[Part] = []
    failures = list(broken)
    for source, module in plugins:
        for outcome in _register(source, module):
            if isinstance(outcome, Part):
                parts.append(outcome)
            else:
                failures.append(outcome)
    return Registry(tuple(parts), tuple(failures))


def _register(source: Source, module: ModuleType) -> Iterator[Part | BrokenPlugin]:
    """The parts of one plugin. It gets a manager of its own, so that a mistake is this plugin's and nobody else's."""
    if refused := _not_a_plugin(source, module) or _other_version(getattr(module, "MMGEN_API", API_VERSION)):
        yield BrokenPlugin(source, refused)
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
    for kind, (hook, wanted) in KINDS.items():
        for implementation in getattr(manager.hook, hook).get_hookimpls():
            try:
                classes = list(implementation.function())
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                yield BrokenPlugin(source, f"{hook}: {reason(error)}")
                continue
            for config in classes:
                yield _checked(source, kind, hook, wanted, config)


def _checked(source: Source, kind: str, hook: str, wanted: type[PartConfig], config: object) -> Part | BrokenPlugin:
    if not (inspect.isclass(config) and issubclass(config, wanted)):
        return BrokenPlugin(
            source, f"{hook}: {getattr(config, '__name__', config)!r} is not a subclass of mmgen.{wanted.__name__}"
        )
    told = config.model_fields["type"]
    name = told.default
    if not isinstance(name, str) or not name:
        return BrokenPlugin(source, f'{hook}: {config.__name__} has no name; give it  type: Literal["..."] = "..."')
    if typing.get_args(told.annotation) != (name,):
        return BrokenPlugin(
            source,
            f'{hook}: {config.__name__} must be called the same everywhere; write  type: Literal["{name}"] = "{name}"',
        )
    if getattr(config, "build", None) is getattr(wanted, "build", None):
        return BrokenPlugin(source, f"{hook}: {config.__name__} has no method build, which makes the part")
    return Part(kind, name, config, source)


def _not_a_plugin(source: Source, module: object) -> str:
    """What a module lacks of being a plugin; empty when it is one."""
    if not isinstance(module, ModuleType):
        return f'the entry point must name a module, and names {module!r}; write  {source.plugin} = "PACKAGE"'
    if not any(name.startswith("register_") for name in vars(module)):
        hooks = ", ".join(hook for hook, _ in KINDS.values())
        return f"provides nothing: {module.__name__} has none of the hooks {hooks}"
    return ""


def _other_version(asked: object) -> str:
    """Why a plugin that asks for this version of the contract (its `MMGEN_API`) cannot be used here; empty when it
    can."""
    if not isinstance(asked, int) or isinstance(asked, bool) or asked < 1:
        return (
            f"MMGEN_API is {asked!r}; it must be a whole number, the mmgen.API_VERSION that the plugin was written for"
        )
    if asked == API_VERSION:
        return ""
    cure = CHANGED if asked < API_VERSION else "upgrade mmgen (pip install -U mmgen-framework)"
    return f"asks for version {asked} of the plugin contract, and this mmgen has version {API_VERSION}; {cure}"


def _written_api(module: str) -> object:
    """The `MMGEN_API` in the source of a module that could not be imported: what one contract has, another lacks."""
    try:
        spec = importlib.util.find_spec(module)
        assert spec is not None and spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_bytes())
        plain = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        names = [node.target if isinstance(node, ast.AnnAssign) else node.targets[0] for node in plain]
        values = {ast.unparse(name): node.value for node, name in zip(plain, names, strict=True) if node.value}
        return ast.literal_eval(values["MMGEN_API"]) if "MMGEN_API" in values else API_VERSION
    except Exception:  # it cannot be found or read either; why it could not be imported says more
        return API_VERSION


def _unknown_hook(error: Exception) -> str:
    """pluggy's complaint about a hook that does not exist, in our words."""
    text = reason(error)
    if "unknown hook" in text:
        hook = text.split("unknown hook ")[1].split("'")[1]
        return f"there is no hook '{hook}'{did_you_mean(hook, [hook for hook, _ in KINDS.values()])}"
    return text


def reason(error: BaseException) -> str:
    """An error in one line: its first, with its class where the text alone says too little."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
