"""Parses the files of Flickr30K Entities (Plummer et al., 2015): sentences with marked phrases, boxes in XML.

Used by a task and a probe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from mmgen.errors import DataError
from mmgen.reading.rows import tidy
from mmgen.reading.text import read_text, read_unpacked

from .boxes import Box, relative, union

SOURCE = "github.com/BryanPlummer/flickr30k_entities"
SENTENCES, ANNOTATIONS = "Sentences", "Annotations"  # folders, each with one file per image
PHRASE = re.compile(r"\[/EN#(\d+)((?:/[^\s/\[\]]+)+)\s+([^\[\]]*)\]")
EDGES = ("xmin", "ymin", "xmax", "ymax")


class Phrase(NamedTuple):
    """A marked phrase of a caption: characters `first` to `end` name the coreference chain `chain`."""

    first: int
    end: int
    chain: str
    types: tuple[str, ...]


class Annotation(NamedTuple):
    """The boxes of a picture. `pixels`: coreference chain -> its boxes, (x0, y0, x1, y1) in pixels, from 0."""

    width: float
    height: float
    pixels: Mapping[str, Sequence[Box]]

    def boxes(self) -> dict[str, list[Box]]:
        """Coreference chain -> its boxes, relative to the picture's size; boxes outside the picture are left out."""
        return {
            chain: [box for corners in boxes if (box := relative(corners, self.width, self.height)) is not None]
            for chain, boxes in self.pixels.items()
        }

    def around(self) -> dict[str, Box | None]:
        """Coreference chain -> the box around all its boxes; None if that box is outside the picture."""
        return {chain: relative(union(boxes), self.width, self.height) for chain, boxes in self.pixels.items()}


def read_sentences(path: Path) -> list[tuple[str, list[Phrase]]]:
    """The captions of an image, each with its phrases. Raises DataError."""
    sentences = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        try:
            if sentence := tidy(line):
                sentences.append(parse_sentence(sentence))
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    return sentences


def parse_sentence(line: str) -> tuple[str, list[Phrase]]:
    """Split a marked caption into its plain text and its phrases. Raises ValueError."""
    text, phrases, end = "", [], 0
    for mark in PHRASE.finditer(line):
        text += line[end : mark.start()]
        words = " ".join(mark[3].split())
        if not words:
            raise ValueError(f"the phrase of '{mark[0]:.60}' has no words")
        phrases.append(Phrase(len(text), len(text) + len(words), mark[1], tuple(mark[2].split("/")[1:])))
        text, end = text + words, mark.end()
    text += line[end:]
    if "[/EN#" in text:
        raise ValueError(
            f"'{text[text.index('[/EN#') :]:.60}' is not a marked phrase; expected, e.g., [/EN#283585/people Two men]"
        )
    return text, phrases


def read_annotation(path: Path) -> Annotation:
    """An image's boxes; pixels count from 1 in the file. Raises DataError."""
    boxes: dict[str, list[Box]] = {}
    try:
        root = ElementTree.fromstring(bytes(read_unpacked(path)))
        width, height = (_number(root, f"size/{side}") for side in ("width", "height"))
        for thing in root.iter("object"):
            if (corners := thing.find("bndbox")) is not None:
                x0, y0, x1, y1 = (_number(corners, edge) - 1 for edge in EDGES)
                for name in thing.iter("name"):
                    boxes.setdefault((name.text or "").strip(), []).append((x0, y0, x1, y1))
        if width <= 0 or height <= 0:
            raise ValueError("no picture size; expected <size><width>500</width><height>375</height></size>")
    except (ElementTree.ParseError, ValueError, LookupError) as error:  # also an unknown encoding
        raise DataError(f"{path}: invalid annotation: {error}") from None
    return Annotation(width, height, boxes)


def _number(element: ElementTree.Element, name: str) -> float:
    text = element.findtext(name, "nothing").strip()
    if not re.fullmatch(r"-?\d{1,9}(\.\d+)?", text, re.ASCII):
        raise ValueError(f"{name} must be a number, not {text!r:.40}")
    return float(text)
