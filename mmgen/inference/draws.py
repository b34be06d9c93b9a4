"""Draws of texts that are sampled: each query has its own, which depend on a seed and on what the query says."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from hashlib import blake2b

from ..data.seeds import seeded
from .query_reader import Prepared


def draws_of(seed: int, prepared: Prepared) -> AbstractContextManager[None]:
    """torch's random numbers for one query, inside the context. They depend on what the query says and shows: neither
    its id nor other queries change them, so that a query has the same texts alone and among others."""
    digest = blake2b(digest_size=16)
    said = [prepared.read[0].example.inputs, prepared.read[0].example.labels]
    digest.update(json.dumps(said, sort_keys=True, default=lambda shown: None).encode())
    for picture in prepared.answer.pictures:
        image = picture.load()
        digest.update(repr((image.size, picture.boxes)).encode() + image.tobytes())
    return seeded(seed, digest.hexdigest())
