"""Which commands there are: the core's own, and those of plugins. Each is imported when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import click

from ..configs import CommandConfig
from ..discovery.loading import reason
from ..discovery.watch import watched
from ..errors import MmgenError, PluginError, did_you_mean
from ..progress import tell
from ..registry import Part, Registry, conflict, installed

OWN = {  # module of this folder -> the commands it has
    "files": ("data", "features"),
    "plugin": ("plugin", "schema"),
    "probe": ("probe",),
    "reports": ("compare", "report"),
    "runs": ("check", "generate", "init", "plugins", "run", "show"),
    "score": ("score",),
    "write": ("write",),
}
MODULES = {name: module for module, names in OWN.items() for name in names}


class Lookup(click.Group):
    """A group that finds its commands by name. A broken plugin, or two commands of one name, stops no other command."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*MODULES, *(part.name for part in installed().of_kind("command"))})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command, or None where there is none. Raises PluginError for one that cannot be had."""
        if name in MODULES:
            return own(name)
        try:
            return built(installed(), name)
        except PluginError:
            if context.resilient_parsing:  # a shell asks what it could complete; it has no place for errors
                return click.Command(name)
            raise

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click's own, but an unknown name is said with what may be meant and which plugins are broken."""
        name = args[0]
        command = self.get_command(context, name)
        if command is not None:
            return name, command, args[1:]
        if context.resilient_parsing or name.startswith("-"):
            return super().resolve_command(context, args)
        first = f"no command is called '{name}'{did_you_mean(name, self.list_commands(context))}"
        raise PluginError("\n".join([first, *(f"  {broken}" for broken in installed().broken)]))

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Every name with its summary. Those of plugins come from their configs: nothing of them is imported."""
        registry = installed()
        commands = {part.name: click.Command(part.name, help=part.summary) for part in registry.of_kind("command")}
        commands |= {name: own(name) for name in MODULES}
        width = formatter.width - 6 - max(map(len, commands))
        with formatter.section("Commands"):
            formatter.write_dl([(name, commands[name].get_short_help_str(width)) for name in sorted(commands)])
        for problem in problems(registry):
            tell(f"error: {problem}", err=True)


def own(name: str) -> click.Command:
    """One of the core's commands."""
    return getattr(importlib.import_module(f"{__package__}.{MODULES[name]}"), name)


def built(registry: Registry, name: str) -> click.Command | None:
    """A plugin's command of this name, None where no plugin has one. Raises PluginError: two have it, or it cannot be
    built."""
    parts = [part for part in registry.of_kind("command") if part.name == name]
    if not parts:
        return None
    part = registry.get("command", name)  # raises where there are two
    assert issubclass(part.config, CommandConfig)
    try:
        with watched(f"the command '{name}' ({part.source})"):
            command: Any = part.config.model_validate({}).build()
    except (KeyboardInterrupt, MmgenError):
        raise
    except BaseException as error:  # a stranger's import may raise anything
        raise PluginError(f"the command '{name}' ({part.source}) failed to load: {reason(error)}") from error
    if not isinstance(command, click.Command):
        raise PluginError(
            f"the command '{name}' ({part.source}) cannot be called: build() of {part.config.__name__} returned "
            f"{command!r}; it must return a click.Command"
        )
    return command


def problems(registry: Registry) -> Iterator[str]:
    """A line each: plugins that failed to load, and commands that more than one provides."""
    yield from map(str, registry.broken)
    groups: dict[str, list[Part]] = {}
    for part in registry.of_kind("command"):
        groups.setdefault(part.name, []).append(part)
    for name, parts in groups.items():
        if name in MODULES:
            owners = " and ".join(str(part.source) for part in parts)
            yield f"the command '{name}' is mmgen's own; the one of {owners} is not used"
        elif len(parts) > 1:
            yield conflict(parts)
