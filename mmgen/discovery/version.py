"""Check the version of the plugin contract that a plugin requires."""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from .. import API_VERSION

CHANGED = f"compare the plugin with docs/plugins.md, then write MMGEN_API = {API_VERSION}"


OURS = "mmgen-framework"  # our distribution. Its version is mmgen.__version__: metadata found first may be another's


def version_problem(requested: object) -> str:
    """Why a plugin that requires this version of the contract (its `MMGEN_API`) cannot be used; empty if it can."""
    if not isinstance(requested, int) or isinstance(requested, bool) or requested < 1:
        return (
            f"MMGEN_API is {requested!r}, but must be a whole number: the mmgen.API_VERSION that the plugin was "
            "written for"
        )
    if requested == API_VERSION:
        return ""
    cure = CHANGED if requested < API_VERSION else "update mmgen (git pull in its checkout, then pip install .)"
    return f"requires version {requested} of the plugin contract, but this mmgen has version {API_VERSION}; {cure}"


def declared_version(module: str) -> object:
    """The `MMGEN_API` in the source of a module that could not be imported: another contract may be the cause."""
    try:
        spec = importlib.util.find_spec(module)
        assert spec is not None and spec.origin is not None
        tree = ast.parse(Path(spec.origin).read_bytes())
        plain = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
        names = [node.target if isinstance(node, ast.AnnAssign) else node.targets[0] for node in plain]
        values = {ast.unparse(name): node.value for node, name in zip(plain, names, strict=True) if node.value}
        return ast.literal_eval(values["MMGEN_API"]) if "MMGEN_API" in values else API_VERSION
    except Exception:  # the source cannot be read either; the import error says more
        return API_VERSION
