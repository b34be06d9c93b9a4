"""What configs of objectives over pictures share: keys, and what is wrong with a step's inputs. Needs no torch."""

from collections.abc import Mapping

from pydantic import Field

import mmgen

Dropout = Field(0.1, ge=0, lt=1, description="on what the last layer of the head reads, while learning")


def without_regions(name: str, inputs: Mapping[str, mmgen.EmbedderConfig]) -> str:
    """What is wrong where the input `name` has no regions to choose from; empty where it has."""
    if isinstance(inputs.get(name), mmgen.FeaturesConfig):
        return ""
    return f"chooses among the regions of '{name}'; the step needs such an input of type \"regions\""
