"""Config of embedders of regions with mentions (words that refer to regions; module `mentions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

import mmgen

if TYPE_CHECKING:
    from mmgen.examples import All

Mention = tuple[int, int, Sequence[int]]  # first character, end, which objects
BEHIND = "_mentions"  # suffix of the field with a text's mentions


class MentionsConfig(mmgen.FeaturesConfig):
    """Regions from a store, with mentions: words of texts that refer to regions."""

    mentions: tuple[str, ...] = Field(
        (),
        description="text inputs with known mentions of objects (VCR), which are in the field <name>_mentions",
    )
    first_object: int = Field(0, ge=0, description="index of the region of the first object that mentions can name")

    def optional_fields(self) -> tuple[str, ...]:
        return tuple(f"{name}{BEHIND}" for name in self.mentions)

    def refers_to_boxes(self, field: str) -> bool:
        return True

    def from_json(self, field: str, value: Any) -> Any:
        return parse_mentions(value)


def parse_mentions(value: Any) -> All:
    """Convert mentions from JSON to the form of an example. Raises ValueError."""
    from mmgen.examples import All

    mistake = (
        f"{str(value)[:60]} is not a list of mentions, [first character, end, [objects]]; characters and objects count "
        "from 0"
    )
    if not isinstance(value, list | tuple):
        raise ValueError(mistake)
    for mention in value:
        valid = isinstance(mention, list | tuple) and len(mention) == 3 and isinstance(mention[2], list | tuple)
        if not valid or any(
            isinstance(number, bool) or not isinstance(number, int) for number in (*mention[:2], *mention[2])
        ):
            raise ValueError(mistake)
    return All(tuple((first, end, tuple(objects)) for first, end, objects in value))
