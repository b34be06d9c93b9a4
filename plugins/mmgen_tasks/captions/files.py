"""Reads COCO's published captions (Chen et al., 2015), which VisualBERT is pretrained on, as a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mmgen_vision.coco import CAPTIONS, YEARS, read_captions
from mmgen_vision.find_files import Finder

from mmgen.examples import Example

from ..dataset import CountedExamples, PublishedDataset, read_images

if TYPE_CHECKING:
    from .config import CocoCaptions


class CocoCaptionFiles(PublishedDataset):
    """Examples of a `CocoCaptions` config.

    id       the split and the image, "train-9"
    inputs   "image": its number; "caption": a tuple of its captions, in the order of their files
    targets  the captions
    """

    name = "COCO captions"
    licence = "captions: CC BY 4.0; images: their owners' terms"
    source = "cocodataset.org, annotations_trainval2014.zip"
    advice = "put the files there, or name other files in data.files"
    config: CocoCaptions

    def finder(self) -> Finder:
        finder = super().finder()
        self.excluded_images = (
            finder.file([self.config.exclude_images], "") if self.config.exclude_images is not None else None
        )
        return finder

    def find(self, finder: Finder, split: str) -> tuple[Path, ...]:
        paths = self.config.files.get(split)
        if paths is not None:
            return tuple(finder.file([path], "") for path in paths)
        return (finder.file([CAPTIONS.format(year=YEARS[split])], self.source),)

    def read(self, split: str) -> CountedExamples:
        captions, counts = read_captions(self.files[split])
        path = self.excluded_images if split != self.config.test_split else None
        excluded = set() if path is None else read_images(path)
        remaining = {key: tuple(texts) for key, texts in captions.items() if key not in excluded}
        examples = [
            Example(f"{split}-{key}", {"image": key, "caption": texts}, texts) for key, texts in remaining.items()
        ]
        return CountedExamples(examples, counts)

    def main_file(self, split: str) -> Path:
        return self.files[split][0]
