"""Draws of texts that are sampled: each query has its own, which depend on a seed and on what the query says."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Any

import torch

from ..data.seeds import seeded
from ..decoding import DecodingConfig
from ..errors import DataError
from ..examples import All
from ..parts import Picture, Record
from .query import values_in
from .query_reader import Prepared

SEEDS = 1 << 31


def choose_seed(options: DecodingConfig, seed: int | None, name: str = "seed") -> int | None:
    """The seed of a call: the given one, or one of torch's random numbers; None for a decoding that does not sample.
    Raises DataError for a seed without effect. `name`: what the user calls it."""
    if not options.samples:
        if seed is not None:
            raise DataError(f"{name}: has an effect only on a decoding that samples (do_sample = true); leave it out")
        return None
    if seed is not None and (type(seed) is not int or seed < 0):
        raise DataError(f"{name} must be a whole number of at least 0, not {seed!r:.60}")
    return int(torch.randint(SEEDS, ())) if seed is None else seed


def draws_of(seed: int | None, group: Sequence[Prepared]) -> AbstractContextManager[None]:
    """torch's random numbers for a group of one query, inside the context. Neither the id of the query nor other
    queries change them, so that a query has the same texts alone and among others. Without a seed they go on."""
    if seed is None or not group[0].read:
        return contextlib.nullcontext()
    example, pictures = group[0].read.rows[0].example, group[0].answer.pictures
    digest, shown = blake2b(digest_size=16), {picture.key for picture in pictures}
    for name, value in sorted({**example.inputs, **example.labels}.items()):
        digest.update(repr((name, _said(value, shown))).encode("utf-8", "surrogatepass"))
    for picture in pictures:
        image = picture.load()
        digest.update(repr((image.size, picture.boxes, picture.region_names)).encode() + image.tobytes())
    return seeded(seed, digest.hexdigest())


def _said(value: Any, shown: set[str]) -> Any:
    """A value of a query, as it is compared: features by their numbers, unless a picture of the query has them."""
    if isinstance(value, All | list | tuple):
        return [_said(part, shown) for part in values_in(value)]
    if isinstance(value, Picture | Record) and value.key in shown:
        return "picture"
    return value.features.tobytes() if isinstance(value, Record) else value
