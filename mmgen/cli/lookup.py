"""Finds a command by its name, in the core or a plugin, and names plugins that failed. A call imports its module."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterator

import click

from ..commands import build_command
from ..configs import CommandConfig
from ..errors import MmgenError, PluginError
from ..progress import tell
from ..registry import Registry, conflict, installed, reason

CORE_COMMANDS = {  # heading in the help -> command -> its module in this folder, its summary
    "Start": {
        "run": ("run", "Train every step of a recipe, write its texts and score them."),
        "init": ("recipes", "Copy mmgen's example recipes into a folder."),
        "check": ("recipes", "Check recipes without running anything."),
        "show": ("recipes", "Print a recipe with merged layers and the origin of each value."),
        "report": ("reports", "Write the table, curves and pictures of a run into one HTML page."),
    },
    "Your data": {
        "data": ("data", "Check a data set."),
        "features": ("features", "Extract, import and inspect image features."),
        "merge": ("merge", "Join features or answers that were made in shards."),
    },
    "Use a trained run": {
        "generate": ("generate", "Generate texts for your own pictures and texts."),
        "predict": ("predict", "Predict labels, choices, regions or boxes for your own inputs."),
        "export": ("models", "Write one step's model as a folder that needs nothing else."),
        "push": ("models", "Upload an exported model to the Hugging Face Hub."),
        "info": ("models", "Describe a run or an exported model."),
        "probe": ("probe", "Analyse attention and representations inside the model."),
    },
    "Evaluate": {
        "score": ("score", "Score any file of predictions, or a finished run."),
        "compare": ("reports", "Compare the scores and recipes of several runs."),
    },
    "Extend": {
        "plugins": ("plugins", "List all installed parts, or show the keys of a part."),
        "plugin": ("plugin", "Create the package of a new plugin."),
        "schema": ("plugin", "Print the JSON schema of recipes, for editors."),
    },
}
MODULES = {name: module for commands in CORE_COMMANDS.values() for name, (module, _) in commands.items()}
SYNONYMS = {  # names of such commands in other programs
    **dict.fromkeys(("train", "learn", "fit", "start"), "run"),
    **dict.fromkeys(("ask", "infer", "caption"), "generate"),
    **dict.fromkeys(("evaluate", "eval", "metrics"), "score"),
    **dict.fromkeys(("validate", "lint"), "check"),
    **dict.fromkeys(("list", "parts"), "plugins"),
}


class Lookup(click.Group):
    """A group that finds its commands by name. A broken plugin or a duplicate name disables no other command."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*MODULES, *installed().by_name("command")})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name, or None. Raises PluginError for a command that fails to load."""
        if name in MODULES:
            return core_command(name)
        try:
            return plugin_command(installed(), name)
        except PluginError:
            if context.resilient_parsing:  # shell completion cannot show errors
                return click.Command(name)
            raise

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, but the error for an unknown name suggests a command and lists broken plugins."""
        name = args[0]
        command = self.get_command(context, name)
        if command is not None:
            return name, command, args[1:]
        if context.resilient_parsing or name.startswith("-"):
            return super().resolve_command(context, args)
        matches = difflib.get_close_matches(name, [*self.list_commands(context), *SYNONYMS], n=1)
        suggestion = (
            f"; did you mean '{SYNONYMS.get(matches[0], matches[0])}'?"
            if matches
            else "; `mmgen --help` lists all commands"
        )
        raise PluginError(
            "\n".join([f"no command is named '{name}'{suggestion}", *(f"  {error}" for error in installed().broken)])
        )

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every name with its summary, in groups, without an import of the commands."""
        registry = installed()
        groups = {
            heading: {name: text for name, (_, text) in entries.items()} for heading, entries in CORE_COMMANDS.items()
        }
        for part in registry.of_kind("command"):
            if part.name not in MODULES:
                groups.setdefault(getattr(part.config, "group", ""), {})[part.name] = part.summary
        width = max(len(name) for entries in groups.values() for name in entries)
        for heading, entries in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in entries.items()])
        for problem in problems(registry):
            tell(f"error: {problem}", err=True)


def core_command(name: str) -> click.Command:
    """The core's command of this name."""
    return getattr(importlib.import_module(f"{__package__}.{MODULES[name]}"), name)


def plugin_command(registry: Registry, name: str) -> click.Command | None:
    """A plugin's command of this name, or None. Raises PluginError if two plugins have one, or if it fails to load."""
    if name not in registry.by_name("command"):
        return None
    part = registry.get("command", name)  # raises if two plugins have it
    assert issubclass(part.config, CommandConfig)
    try:
        return build_command(part.config.model_validate({}))
    except PluginError as error:
        raise PluginError(f"the command '{name}' ({part.source}) cannot be called: {error}") from error
    except (KeyboardInterrupt, MmgenError):
        raise
    except BaseException as error:  # a stranger's import may raise anything
        raise PluginError(f"the command '{name}' ({part.source}) failed to load: {reason(error)}") from error


def problems(registry: Registry) -> Iterator[str]:
    """One line for each plugin that failed to load, and for each command that several plugins provide."""
    yield from map(str, registry.broken)
    for name, parts in registry.by_name("command").items():
        if name in MODULES:
            owners = " and ".join(str(part.source) for part in parts)
            ignored = f"the command '{name}' of {owners} is ignored; its author must rename it"
            yield f"the command '{name}' belongs to mmgen; {ignored}"
        elif len(parts) > 1:
            yield conflict(parts)
