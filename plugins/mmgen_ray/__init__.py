"""The config of the command `mmgen ray`: shards of commands, and steps of runs, as tasks of Ray:
docs/guides/scale.md."""

from typing import ClassVar, Literal

import mmgen


class Ray(mmgen.CommandConfig):
    """Run shards of a command, or steps of a recipe, as tasks of Ray."""

    type: Literal["ray"] = "ray"
    group: ClassVar[str] = "Many machines"

    def build(self):
        from .command import ray

        return ray


@mmgen.hookimpl
def register_commands():
    return [Ray]
