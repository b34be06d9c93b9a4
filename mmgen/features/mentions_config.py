"""The config of embedders of regions that words mean: what the reader of mentions (`mentions`) is built from."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from ..configs import FeaturesConfig

BEHIND = "_mentions"  # behind the name of a text: the field with its mentions


class MentionsConfig(FeaturesConfig):
    """Regions out of a store, some of which the words of texts mean."""

    mentions: tuple[str, ...] = Field(
        (),
        description="inputs of texts whose mentions of objects are known (VCR), in the field of that name with "
        "_mentions behind it",
    )
    first_object: int = Field(0, ge=0, description="which region the first object is, where mentions name objects")

    def may_read(self) -> tuple[str, ...]:
        return tuple(f"{name}{BEHIND}" for name in self.mentions)

    def asked(self, field: str, value: Any) -> Any:
        from .mentions import asked_mentions

        return asked_mentions(value)
