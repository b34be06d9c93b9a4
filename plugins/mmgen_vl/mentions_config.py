"""The config of embedders of regions that words mean: what the reader of mentions (`mentions`) is built from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

import mmgen

if TYPE_CHECKING:
    from mmgen.tensors import All

Mention = tuple[int, int, Sequence[int]]  # first character, end, which objects
BEHIND = "_mentions"  # behind the name of a text: the field with its mentions


class MentionsConfig(mmgen.FeaturesConfig):
    """Regions out of a store, some of which the words of texts mean."""

    mentions: tuple[str, ...] = Field(
        (),
        description="inputs of texts whose mentions of objects are known (VCR), in the field of that name with "
        "_mentions behind it",
    )
    first_object: int = Field(0, ge=0, description="which region the first object is, where mentions name objects")

    def optional_fields(self) -> tuple[str, ...]:
        return tuple(f"{name}{BEHIND}" for name in self.mentions)

    def from_json(self, field: str, value: Any) -> Any:
        return asked_mentions(value)


def asked_mentions(value: Any) -> All:
    """A query's mentions as an example has them. Raises ValueError."""
    from mmgen.tensors import All  # torch

    mistake = (
        f"{str(value)[:60]} is no list of mentions, [first letter, end, [objects]]; letters and objects count from 0"
    )
    if not isinstance(value, list | tuple):
        raise ValueError(mistake)
    for mention in value:
        good = isinstance(mention, list | tuple) and len(mention) == 3 and isinstance(mention[2], list | tuple)
        if not good or any(
            isinstance(number, bool) or not isinstance(number, int) for number in (*mention[:2], *mention[2])
        ):
            raise ValueError(mistake)
    return All(tuple((first, end, tuple(objects)) for first, end, objects in value))
