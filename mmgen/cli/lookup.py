"""Which commands there are: the core's own, and those of plugins. Each is imported when it is called."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator
from typing import Any

import click

from ..configs import CommandConfig
from ..discovery.loading import calling, reason
from ..errors import MmgenError, PluginError
from ..progress import tell
from ..registry import Part, Registry, conflict, installed

OWN = {  # heading in the help -> command -> the module of this folder that has it, what it is for
    "Start": {
        "run": ("runs", "Learn, write and score every step of a recipe."),
        "init": ("runs", "Copy the recipes that come with mmgen into a folder."),
        "check": ("runs", "Check recipes without running anything."),
        "show": ("runs", "Print a recipe with all its layers, and where each value is from."),
        "report": ("reports", "Write a finished run's table, curves and pictures into one page."),
    },
    "Own data": {
        "data": ("files", "Count what a data set holds, or write it as others are published."),
        "features": ("files", "Make, import and look into files of image features."),
    },
    "Ask a finished run": {
        "generate": ("runs", "Write about your own pictures and texts."),
        "predict": ("predict", "Predict labels, choices, regions or boxes for your own."),
        "write": ("write", "Write the test split again with another decoding."),
        "probe": ("probe", "See what words look at, and what is alike inside the model."),
    },
    "Evaluate": {
        "score": ("score", "Score any file of predictions, or a finished run."),
        "compare": ("reports", "Set runs side by side, and say how their recipes differ."),
    },
    "Extend": {
        "plugins": ("parts", "List every part that is installed, or show a part's keys."),
        "plugin": ("plugin", "Begin a plugin of your own."),
        "schema": ("plugin", "Print the JSON schema of recipes, for editors."),
    },
}
MODULES = {name: module for commands in OWN.values() for name, (module, _) in commands.items()}
MEANT = {  # what commands are called elsewhere
    **dict.fromkeys(("train", "learn", "fit", "start"), "run"),
    **dict.fromkeys(("ask", "infer", "caption"), "generate"),
    **dict.fromkeys(("evaluate", "eval", "metrics"), "score"),
    **dict.fromkeys(("validate", "lint"), "check"),
    **dict.fromkeys(("list", "parts"), "plugins"),
}


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
        close = difflib.get_close_matches(name, [*self.list_commands(context), *MEANT], n=1)
        meant = f"; did you mean '{MEANT.get(close[0], close[0])}'?" if close else "; `mmgen --help` lists them"
        raise PluginError(
            "\n".join([f"no command is called '{name}'{meant}", *(f"  {one}" for one in installed().broken)])
        )

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Every name with its summary, in groups. Nothing of the commands is imported: those of plugins are in their
        configs."""
        registry = installed()
        groups = {heading: {name: text for name, (_, text) in some.items()} for heading, some in OWN.items()}
        for part in registry.of_kind("command"):
            if part.name not in MODULES:
                groups.setdefault(getattr(part.config, "group", ""), {})[part.name] = part.summary
        widest = max(len(name) for some in groups.values() for name in some)
        for heading, some in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, text in some.items()])
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
        with calling(f"the command '{name}' ({part.source})"):
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
