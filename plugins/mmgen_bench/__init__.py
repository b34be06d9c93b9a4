"""The benchmark that anybody can run: this framework beside the paper's own procedure and the decoders of transformers.

Systems of one shape, random weights, the same made-up data, timed in turn in one process; times stand beside counted
work, so that a gap has to be explained. `docs/performance.md` has what was measured.
"""

from typing import ClassVar, Literal

import mmgen


class Bench(mmgen.CommandConfig):
    """Compare the speed with the paper's procedure and other decoders."""

    type: Literal["bench"] = "bench"
    group: ClassVar[str] = "Evaluate"

    def build(self):
        from .command import bench

        return bench


@mmgen.hookimpl
def register_commands():
    return [Bench]
