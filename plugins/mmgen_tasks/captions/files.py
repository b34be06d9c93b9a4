"""COCO's captions (Chen et al., 2015): what VisualBERT is pretrained on."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from mmgen_vl.coco import CAPTIONS, YEARS, read_captions

from mmgen.reading.finding import Finder
from mmgen.tensors import Example

from ..dataset import PublishedDataset, Read, read_images

if TYPE_CHECKING:
    from .config import CocoCaptions

ODD_CAPTIONS = {"empty_captions": "without_text", "duplicate_captions": "duplicate_captions"}


class CocoCaptionFiles(PublishedDataset):
    """Examples of a `CocoCaptions` config.

    id       the split and the image, "train-9"
    inputs   "image": its number; "caption": a tuple of its captions, in their files' order
    targets  the captions
    """

    name = "COCO captions"
    licence = "captions: CC BY 4.0; images: their owners' terms"
    source = "cocodataset.org, annotations_trainval2014.zip"
    advice = "put them there, or name others in data.files"
    config: CocoCaptions

    def finder(self) -> Finder:
        finder = super().finder()
        self.left_out = (
            finder.file([self.config.exclude_images], "") if self.config.exclude_images is not None else None
        )
        return finder

    def find(self, finder: Finder, split: str) -> tuple[Path, ...]:
        named = self.config.files.get(split)
        if named is not None:
            return tuple(finder.file([path], "") for path in named)
        return (finder.file([CAPTIONS.format(year=YEARS[split])], self.source),)

    def read(self, split: str) -> Read:
        captions, odd = read_captions(self.files[split])
        counts = Counter({ODD_CAPTIONS[name]: count for name, count in odd.items()})
        without = self.left_out if split != self.config.test_split else None
        held_out = set() if without is None else read_images(without)
        kept = {key: tuple(texts) for key, texts in captions.items() if key not in held_out}
        examples = [Example(f"{split}-{key}", {"image": key, "caption": texts}, texts) for key, texts in kept.items()]
        return Read(examples, counts)

    def named(self, split: str) -> Path:
        return self.files[split][0]
