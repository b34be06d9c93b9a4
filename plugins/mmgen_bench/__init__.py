"""The config of the command `mmgen bench`: mmgen compared with the paper's procedure and transformers' decoders.

All systems have the same shape, random weights and the same synthetic data. They are timed in turn in one process.
Measured times are shown next to counted work, so that every gap has to be explained. `docs/performance.md` has results.
"""

from typing import ClassVar, Literal

import mmgen


class Bench(mmgen.CommandConfig):
    """Compare speed with the paper's procedure and other decoders."""

    type: Literal["bench"] = "bench"
    group: ClassVar[str] = "Evaluate"

    def build(self):
        from .command import bench

        return bench


@mmgen.hookimpl
def register_commands():
    return [Bench]
