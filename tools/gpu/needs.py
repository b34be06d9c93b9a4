"""The requirements of a run, and one line that lists all missing ones with the commands to install them.

They are read from pyproject.toml. Caption metrics are left out, since the main job works without them; pytest is
added."""

from __future__ import annotations

import platform
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version

from .checkout import ROOT

OPTIONAL = ("pycocoevalcap",)
TESTING = ("pytest>=8",)
LARGE = ("torch", "torchvision")  # gigabytes, and they have to fit the driver
ALONE = ("accelerate", "timm", "transformers")  # small, but what they need is not: their wheels are fetched alone
PARTS = re.compile(r"([\w.-]+)(?:>=([\d.]+))?")


def needed() -> list[str]:
    """Requirements, such as `filelock>=3.30`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [requirement for requirement in [*project["dependencies"], *TESTING] if _name(requirement) not in OPTIONAL]


def lacking(requirements: list[str]) -> dict[str, str | None]:
    """Unmet requirements, with the installed version of each."""
    missing: dict[str, str | None] = {}
    for requirement in requirements:
        name, least = PARTS.match(requirement).groups()
        try:
            here = version(name)
        except PackageNotFoundError:
            missing[requirement] = None
            continue
        if least and _numbers(here) < _numbers(least):
            missing[requirement] = here
    return missing


def refusal(missing: dict[str, str | None]) -> str:
    """The error line: missing packages, which wheels to copy, and what the machine itself must have."""
    named = [f"{requirement} ({here} is here)" if here else requirement for requirement, here in missing.items()]
    large = [requirement for requirement in missing if _name(requirement) in LARGE]
    lines = [f"error: a run on a GPU needs {', '.join(named)}"]
    if large:
        lines.append(f"too large to copy; choose a machine that has them: {', '.join(large)}")
    small = [requirement for requirement in missing if _name(requirement) not in LARGE]
    fetched = [_download([requirement for requirement in small if _name(requirement) not in ALONE])]
    fetched.append(_download([requirement for requirement in small if _name(requirement) in ALONE], "--no-deps "))
    if small:
        quoted = " ".join(f"'{requirement}'" for requirement in small)
        lines.append(
            f"small wheels to copy: {' && '.join(filter(None, fetched))}, and on this machine "
            f"`python -m pip install --no-index --find-links wheels {quoted}`"
        )
    return "; ".join(lines)


def _download(requirements: list[str], more: str = "") -> str:
    if not requirements:
        return ""
    place = f"--only-binary=:all: --python-version {sys.version_info[0]}.{sys.version_info[1]}"
    kinds = (f"{kind}_{platform.machine()}" for kind in ("manylinux_2_28", "manylinux2014"))
    platforms = " ".join(f"--platform {kind}" for kind in kinds)
    quoted = " ".join(f"'{requirement}'" for requirement in requirements)
    return f"`python -m pip download {more}-d wheels {place} {platforms} {quoted}`"


def _name(requirement: str) -> str:
    return PARTS.match(requirement)[1]


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a version such as 3.30.1; what follows a letter or a plus is left out."""
    return tuple(int(part) for part in re.match(r"[\d.]*", text)[0].split(".") if part)
