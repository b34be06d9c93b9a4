"""COCO's captions: texts to pretrain from, or to learn to write.

The keys that recipes have for them."""

from pathlib import Path
from typing import Annotated, Literal

from mmgen_vl.configs import Published, SplitName
from pydantic import Field

from mmgen.configs import RelativeTo


class CocoCaptions(Published):
    """COCO's captions, an example an image with all of its captions: to pretrain from, or to learn to write.

    Each split may have several files: `files = { train = ["captions_train2014.json", "captions_val2014.json"] }`, with
    `without` for those images that are to be tested on.
    """

    type: Literal["coco_captions"] = "coco_captions"
    validation_split: str = Field("val", description="the split whose loss is watched while training")
    test_split: str = Field("val", description="the split that every step writes for and is scored on")

    files: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of captions, instead of the published name"
    )
    exclude_images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="images that no split but `evaluate` has: a text file, an image's number a line"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(["train", "val", *self.files]))

    @classmethod
    def exporters(cls):
        from . import export

        return (export.CocoCaptions(),)

    def build(self):
        from .files import CocoCaptionFiles

        return CocoCaptionFiles(self)
