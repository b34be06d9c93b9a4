"""Config of embedders of regions with mentions (words that refer to regions; module `mentions`)."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

import mmgen

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
