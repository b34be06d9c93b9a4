"""COCO's captions (Chen et al., 2015): texts that VisualBERT is pretrained on, or to train captioning on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from mmgen_vision.coco import CAPTIONS, WHERE, YEARS, CaptionRow, join_captions
from mmgen_vision.configs import About, Published
from pydantic import Field

from mmgen.examples import Example

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData


class CocoCaptions(Published):
    """COCO's captions, one example per image with all of its captions: to pretrain on, or to train captioning on.

    Each split may have several files: `files = { train = ["captions_train2014.json", "captions_val2014.json"] }`, with
    `held_out` for the images to test on.
    """

    type: Literal["coco_captions"] = "coco_captions"
    about = About("COCO captions", "captions: CC BY 4.0; images: their owners' terms", WHERE)
    published = ("train", "val")

    test_split: str = Field("val", description="the split that every step generates for and is scored on")

    def find(self, finder: Finder, split: str) -> Files:
        return {"captions": finder.files(split, CAPTIONS.format(year=YEARS.get(split)))}

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Examples "train-9", of image 9: inputs "image" and "caption", a tuple of its captions, which are the targets
        too."""
        captions, left_out = join_captions(data.rows(split, "captions", CaptionRow, "annotations"))
        yield from left_out
        for key, texts in captions.items():
            yield Example(f"{split}-{key}", {"image": key, "caption": tuple(texts)}, tuple(texts))
