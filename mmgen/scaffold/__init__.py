"""Create a new plugin package from templates. The package can be installed, passes its tests and runs at once."""

from __future__ import annotations

import importlib.util
import keyword
import re
from importlib.resources import files
from pathlib import Path
from string import Template

from .. import registry as discovery
from ..errors import PluginError
from ..registry import Registry

_templates = files(__package__).joinpath("templates")
KINDS = tuple(kind for kind in discovery.KINDS if _templates.joinpath(kind).is_dir())
PLACES = {  # template -> its path; other files go into the package under their own names
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "recipe.toml": "recipe.toml",
    "gitignore": ".gitignore",
    "test.py": "tests/test_$stem.py",
    "config.py": "$module/__init__.py",
    "part.py": "$module/$kind.py",
}


def create(name: str, kind: str, registry: Registry) -> list[Path]:
    """Write the package `mmgen-NAME` into a new folder; returns its files. Raises PluginError for a name that is
    invalid or taken."""
    name = re.sub("^mmgen[-_]", "", name)
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise PluginError(f"'{name}' is not a valid name; use small letters, digits and hyphens, such as log-mel")
    stem = name.replace("-", "_")
    cls, module, folder = stem.title().replace("_", ""), f"mmgen_{stem}", Path(f"mmgen-{stem.replace('_', '-')}")
    texts = {  # the files end with .txt, so that tools do not treat templates as modules
        file.name.removesuffix(".txt"): file.read_text(encoding="utf-8")
        for group in ("every", kind)
        for file in _templates.joinpath(group).iterdir()
    }
    if owners := registry.by_name(kind).get(name):
        problem = f"the {kind} '{name}' already exists, from {owners[0].source}"
    elif keyword.iskeyword(cls) or cls.startswith("Test") or re.search(rf"\b{cls}\b", "".join(texts.values())):
        problem = f"'{name}' gives the class name {cls}, which has another meaning"
    elif importlib.util.find_spec(module):
        problem = f"a package {module} already exists"
    else:
        problem = f"{folder}: already exists" * folder.exists()
    if problem:
        raise PluginError(f"{problem}; choose another name")
    names = {"name": name, "kind": kind, "stem": stem, "module": module, "project": folder.name, "Class": cls}
    written = []
    for place, text in sorted(texts.items()):
        path = folder / Template(PLACES.get(place, f"$module/{place}")).substitute(names)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(Template(text).substitute(names), encoding="utf-8")
        written.append(path)
    return written
