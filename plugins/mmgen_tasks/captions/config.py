"""Config of COCO's captions: texts to pretrain on, or to train captioning on.

The data set's recipe keys."""

from pathlib import Path
from typing import Annotated, Literal

from mmgen_vision.configs import Published, SplitName
from pydantic import Field

from mmgen.configs import RelativeTo


class CocoCaptions(Published):
    """COCO's captions, one example per image with all of its captions: to pretrain on, or to train captioning on.

    Each split may have several files: `files = { train = ["captions_train2014.json", "captions_val2014.json"] }`, with
    `exclude_images` for the images of the test split.
    """

    type: Literal["coco_captions"] = "coco_captions"
    validation_split: str = Field("val", description="the split whose loss is measured during training")
    test_split: str = Field("val", description="the split that every step generates for and is scored on")

    files: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of captions, instead of the published name"
    )
    exclude_images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="images that only `test_split` has: a text file of image numbers, one per line"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(["train", "val", *self.files]))

    def build(self):
        from .files import CocoCaptionFiles

        return CocoCaptionFiles(self)
