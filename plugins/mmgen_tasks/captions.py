"""COCO's captions (Chen et al., 2015): texts that VisualBERT is pretrained on, or to train captioning on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from mmgen_vision.coco import CAPTIONS, WHERE, YEARS, CaptionRow, join_captions
from mmgen_vision.configs import About, Published
from mmgen_vision.lines import read_images
from pydantic import Field

from mmgen.configs import RelativeTo
from mmgen.examples import Example

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData


class CocoCaptions(Published):
    """COCO's captions, one example per image with all of its captions: to pretrain on, or to train captioning on.

    Each split may have several files: `files = { train = ["captions_train2014.json", "captions_val2014.json"] }`, with
    `exclude_images` for the images of the test split.
    """

    type: Literal["coco_captions"] = "coco_captions"
    about = About("COCO captions", "captions: CC BY 4.0; images: their owners' terms", WHERE)
    published = ("train", "val")

    test_split: str = Field("val", description="the split that every step generates for and is scored on")
    exclude_images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="images that only `test_split` has: a text file of image numbers, one per line"
    )

    def find(self, finder: Finder, split: str) -> Files:
        names = self.named_files(split) or (Path(CAPTIONS.format(year=YEARS[split])),)
        excluded = () if self.exclude_images is None or split == self.test_split else (self.exclude_images,)
        captions = [finder.file(name, where=WHERE) for name in names]
        return {"captions": captions, "excluded": [finder.file(name) for name in excluded]}

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Examples "train-9", of image 9: inputs "image" and "caption", a tuple of its captions, which are the targets
        too."""
        captions = join_captions(data.rows(split, "captions", CaptionRow, "annotations"))
        yield from captions.left_out
        excluded = {number for path in data.files[split]["excluded"] for number in read_images(path)}
        for key, texts in captions.of.items():
            if key not in excluded:
                yield Example(f"{split}-{key}", {"image": key, "caption": tuple(texts)}, tuple(texts))
