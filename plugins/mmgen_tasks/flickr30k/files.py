"""Reads Flickr30K Entities (Plummer et al., 2015) as a data set: captions with marked phrases, the phrases' boxes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mmgen_vision.boxes import Box
from mmgen_vision.find_files import Finder
from mmgen_vision.flickr30k_files import ANNOTATIONS, SENTENCES, SOURCE, Phrase, read_annotation, read_sentences

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.files import image_key
from mmgen.reading.text import read_text

from ..dataset import CountedExamples, PublishedDataset

if TYPE_CHECKING:
    from .config import Flickr30kEntities

NAME = re.compile(r"\w[\w.-]*")


class Files(NamedTuple):
    """The files of a split."""

    names: Path
    sentences: Path
    annotations: Path


class Flickr30kFiles(PublishedDataset):
    """Examples of a `Flickr30kEntities` config: one per phrase in the split to evaluate, else one per caption.

    id       image, number of the caption and, in the split to evaluate, of the phrase: "1000092795-0-2"
    inputs   "image": its key; "caption"
    labels   "phrases": ((first character, end, box), ...), the box around all things that the phrase names, relative
             to the picture's size; phrases without a box are left out
    facts    image; types: one per phrase (people, clothing, ...); in the split to evaluate type
    """

    name = "Flickr30K Entities"
    licence = "not stated; images: for non-commercial research and education, their photographers' terms"
    source = SOURCE
    advice = "put the files there, or name other files in data.files"
    boxed = "phrase"
    config: Flickr30kEntities

    def find(self, finder: Finder, split: str) -> Files:
        names = self.config.files.get(split, Path(f"{split}.txt"))
        advice = f"unpack annotations.zip of {SOURCE} in data.folder"
        return Files(
            finder.file([names], f"{SOURCE}, {split}.txt"),
            finder.subfolder(SENTENCES, advice),
            finder.subfolder(ANNOTATIONS, advice),
        )

    def main_file(self, split: str) -> Path:
        return self.files[split].names

    def read(self, split: str) -> CountedExamples:
        files, counts = self.files[split], Counter[str]()
        names = read_names(files.names)
        places = [(name, files.sentences / f"{name}.txt", files.annotations / f"{name}.xml") for name in names]
        if absent := [path for _, *two in places for path in two if not path.is_file()]:
            raise DataError(
                f"{files.names}: {len(absent):,} files of the split's images are missing (first: {absent[0]}); unpack "
                f"annotations.zip of {SOURCE} again"
            )
        examples = [
            example
            for name, sentences, annotations in places
            for example in self._of_image(
                split, name, read_sentences(sentences), read_annotation(annotations).around(), counts
            )
        ]
        return CountedExamples(examples, counts)

    def _of_image(
        self,
        split: str,
        name: str,
        captions: Sequence[tuple[str, Sequence[Phrase]]],
        boxes: dict[str, Box | None],
        counts: Counter[str],
    ) -> Iterator[Example]:
        key = image_key(name)
        for number, (caption, phrases) in enumerate(captions):
            boxed_phrases = []
            for place, phrase in enumerate(phrases):
                box = boxes.get(phrase.chain)
                counts["without_box"] += box is None
                if box is not None:
                    boxed_phrases.append((place, (phrase.first, phrase.end, box), phrase.types[0]))
            counts["without_phrase"] += not boxed_phrases
            example_id, inputs = f"{name}-{number}", {"image": key, "caption": caption}
            if split == self.config.test_split:
                for place, phrase_, type_ in boxed_phrases:
                    facts = {"image": key, "type": type_, "types": [type_]}
                    yield Example(f"{example_id}-{place}", inputs, (), facts, {"phrases": (phrase_,)})
            elif boxed_phrases:
                facts = {"image": key, "types": [type_ for _, _, type_ in boxed_phrases]}
                yield Example(
                    example_id, inputs, (), facts, {"phrases": tuple(phrase_ for _, phrase_, _ in boxed_phrases)}
                )


def read_names(path: Path) -> list[str]:
    """The image names of a split, one per line of the file. Raises DataError."""
    line_numbers: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if name := line.strip():
            if len(name) > 200 or not NAME.fullmatch(name):
                raise DataError(f"{path}:{number}: '{name:.60}' is not an image name; use letters, digits, - and .")
            if name in line_numbers:
                raise DataError(f"{path}:{number}: duplicate image {name}, first on line {line_numbers[name]}")
            line_numbers[name] = number
    return [*line_numbers]
