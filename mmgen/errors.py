"""Errors that a person can cause. The command line prints them without a traceback and exits with 1."""


class MmgenError(Exception):
    """What is wrong, where, and what to do about it: one line each, shown as it stands."""


class RecipeError(MmgenError):
    """One or several mistakes in a recipe; each line names the place and the mend."""


class PluginError(MmgenError):
    """A plugin that cannot be loaded, is ambiguous, or breaks its contract."""


class DataError(MmgenError):
    """Files that are missing, damaged, or do not fit together."""


class RunError(MmgenError):
    """A run folder that cannot be used: another recipe's, damaged, or without the wanted step."""


class UnavailableError(MmgenError):
    """Something optional that this machine lacks (Java for METEOR, say)."""
