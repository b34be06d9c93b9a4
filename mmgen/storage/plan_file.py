"""The plan of an unfinished step in a file, since making the plan of a million examples takes seconds."""

from __future__ import annotations

import contextlib
import hashlib
import json
from array import array
from collections.abc import Sequence
from pathlib import Path

import torch

from ..data import example_sizes, plan, seeds
from ..data.plan import Plan, PlanOptions, Updates
from ..data.sources import DataStream
from ..data.stream_plan import stream_plan
from ..errors import RunError
from ..files import file_digest
from .weights import read_tensors, write_tensors

NAME = "plan.safetensors"
WORTH_KEEPING = 100_000  # samples of a plan, at least
MADE_FROM = "made from"


def make_plan(folder: Path, streams: Sequence[DataStream], options: PlanOptions, writes: bool) -> Plan:
    """`Plan.make`, or the plan that an earlier start made from the same sizes and options and left in the step's
    folder. `writes`: whether this process writes the file of a large plan."""
    if any(stream.source.stream for stream in streams):
        return stream_plan(options)
    made_from, path = _made_from(streams, options), folder / NAME
    if made_from is None:
        return Plan.make(streams, options)
    with contextlib.suppress(RunError, LookupError, ValueError, RecursionError):  # no file, or a damaged one
        tensors, about = read_tensors(path)
        if about.get(MADE_FROM) == made_from:
            columns = {
                name: _parse_column(kind, tensors[name].numpy().tobytes()) for name, kind in Updates.KINDS.items()
            }
            return Plan(
                options.seed, options.step, Updates(**columns), tuple(json.loads(about["epochs"])), int(about["cut"])
            )
    created = Plan.make(streams, options)
    if writes and isinstance(created.updates, Updates) and len(created.updates.indices) >= WORTH_KEEPING:
        columns = {name: getattr(created.updates, name) for name in Updates.KINDS}
        tensors = {name: torch.frombuffer(column, dtype=torch.uint8) for name, column in columns.items()}
        about = {MADE_FROM: made_from, "epochs": json.dumps(created.epochs), "cut": str(created.cut)}
        with contextlib.suppress(RunError):  # the next start makes the plan again
            write_tensors(path, tensors, about)
    return created


def _parse_column(kind: str, content: bytes) -> array[int]:
    column: array[int] = array(kind)
    column.frombytes(content)
    return column


def _made_from(streams: Sequence[DataStream], options: PlanOptions) -> str | None:
    """A digest of all that a plan follows from: options, sizes of examples, and code. None if the sizes are not known,
    or not all of them."""
    code = [file_digest(Path(module.__file__ or "")) for module in (example_sizes, plan, seeds)]
    digest = hashlib.sha256(repr((code, options)).encode())
    for stream in streams:
        sizes = stream.source.measures
        if sizes is None or not sizes.complete:
            return None
        digest.update(repr((stream.source.share, sizes.table())).encode())
        for name in example_sizes.COLUMNS:
            column = getattr(sizes, name)
            digest.update(f"{name} {len(column)} ".encode())
            digest.update(column)
    return digest.hexdigest()
