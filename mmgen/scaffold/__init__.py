"""Create a new plugin package from templates. The package can be installed, passes its tests and runs at once."""

from __future__ import annotations

import ast
import importlib.util
import keyword
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from .. import registry as discovery
from ..errors import PluginError
from ..registry import Registry

TEMPLATES = "templates"
KINDS = tuple(kind for kind in discovery.KINDS if files(__package__).joinpath(TEMPLATES, kind).is_dir())
RECIPE = "recipe.toml"  # kinds that recipes do not name have no recipe
PLACES = {  # template -> its path; other files go into the package under their own names
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    RECIPE: RECIPE,
    "gitignore": ".gitignore",
    "test.py": "tests/test_$stem.py",
    "config.py": "$module/__init__.py",
    "part.py": "$module/$kind.py",
}


def create(name: str, kind: str, parent: Path, registry: Registry) -> list[Path]:
    """Write the package `mmgen-NAME` into a new folder of `parent`; returns the files. Raises PluginError."""
    names = checked(name, kind, registry)
    folder = parent / names["project"]
    if folder.exists():
        raise PluginError(f"{folder}: already exists; move the folder, or choose another name")
    written = []
    for place, text in sorted(_templates(kind)):
        path = folder / Template(PLACES.get(place, f"$module/{place}")).substitute(names)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(Template(text).substitute(names), encoding="utf-8")
        except OSError as error:
            raise PluginError(f"{path}: cannot be written: {error.strerror}; choose another folder with --in") from None
        written.append(path)
    return written


def checked(name: str, kind: str, registry: Registry) -> dict[str, str]:
    """The values of the templates' placeholders. Raises PluginError for an invalid name, or one that is taken."""
    name = re.sub("^mmgen[-_]", "", name)
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise PluginError(
            f"'{name}' is not a valid name; use small letters, digits and single hyphens, such as log-mel"
        )
    stem = name.replace("-", "_")
    cls = "".join(word.title() for word in stem.split("_"))
    if owners := registry.by_name(kind).get(name):
        raise PluginError(
            f"the {kind} '{name}' already exists, from {owners[0].source} ({owners[0].place}); choose another name"
        )
    if (
        keyword.iskeyword(cls) or cls.startswith("Test") or cls in _names_in_templates(kind)
    ):  # pytest would collect TestX
        raise PluginError(f"'{name}' gives the class name {cls}, which has another meaning; choose another name")
    if importlib.util.find_spec(f"mmgen_{stem}") is not None:
        raise PluginError(f"a package mmgen_{stem} already exists; choose another name")
    project = f"mmgen-{stem.replace('_', '-')}"
    uses = f"mmgen {name} RUN".ljust(28) + "# RUN: the folder of a run"
    if any(place == RECIPE for place, _ in _templates(kind)):
        uses = f"mmgen run {RECIPE}".ljust(28) + "# uses it, on drawn scenes; nothing is downloaded"
    return {
        "name": name,
        "kind": kind,
        "stem": stem,
        "module": f"mmgen_{stem}",
        "project": project,
        "Class": cls,
        "use": uses,
    }


def _names_in_templates(kind: str) -> set[str]:
    """Names that the templates of a kind import, define or call, so that a new class must not use them."""
    blank = dict.fromkeys(("name", "kind", "stem", "module", "project", "Class", "use"), "_blank")
    names: set[str] = set()
    for place, text in _templates(kind):
        for node in ast.walk(ast.parse(Template(text).substitute(blank))) if place.endswith(".py") else ():
            names |= {
                alias.asname or alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)
            }
            names |= (
                {node.id} if isinstance(node, ast.Name) else {node.name} if isinstance(node, ast.ClassDef) else set()
            )
    return names


def _templates(kind: str) -> Iterator[tuple[str, str]]:
    """(name, text) of each template of a kind, and of the templates for all kinds."""
    folder: Traversable = files(__package__).joinpath(TEMPLATES)
    for group in ("every", kind):
        for file in folder.joinpath(group).iterdir():
            if file.name.endswith(".txt"):  # .txt, so that tools do not treat templates as modules
                yield file.name.removesuffix(".txt"), file.read_text(encoding="utf-8")
