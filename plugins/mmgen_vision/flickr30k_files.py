"""Parses the files of Flickr30K Entities (Plummer et al., 2015): sentences with marked phrases, boxes in XML.

Used by a task and a probe.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from mmgen.errors import DataError
from mmgen.reading.text import read_text, read_unpacked, tidy

from .boxes import Box, relative, union

SOURCE = "github.com/BryanPlummer/flickr30k_entities"
SENTENCES, ANNOTATIONS = "Sentences", "Annotations"  # folders, each with one file per image
PHRASE = re.compile(r"\[/EN#(\d+)((?:/[^\s/\[\]]+)+)\s+([^\[\]]*)\]")
MOST_BYTES = 1 << 22  # of an annotation file
MOST_LEVELS = 16
MOST_CAPTIONS = 1000  # of an image; the published files have five
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
    """Read the captions of an image, each with its phrases. Raises DataError."""
    sentences: list[tuple[str, list[Phrase]]] = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if len(sentences) == MOST_CAPTIONS:
            raise DataError(
                f"{path}:{number}: over {MOST_CAPTIONS:,} captions; expected the captions of one image, one per line"
            )
        try:
            if sentence := tidy(line, "the caption"):
                sentences.append(parse_sentence(sentence))
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    return sentences


def parse_sentence(line: str) -> tuple[str, list[Phrase]]:
    """Split a marked caption into its plain text and its phrases. Raises DataError."""
    text, phrases, end = "", [], 0
    for mark in PHRASE.finditer(line):
        text += line[end : mark.start()]
        words = " ".join(mark[3].split())
        if not words:
            raise DataError(f"the phrase of '{mark[0]:.60}' has no words")
        phrases.append(Phrase(len(text), len(text) + len(words), mark[1], tuple(mark[2].split("/")[1:])))
        text, end = text + words, mark.end()
    text += line[end:]
    if "[/EN#" in text:
        raise DataError(
            f"'{text[text.index('[/EN#') :]:.60}' is not a marked phrase; expected, e.g., [/EN#283585/people Two men]"
        )
    return text, phrases


class _Objects:
    """Collects the objects of an annotation while its XML is parsed."""

    def __init__(self) -> None:
        self.boxes: dict[str, list[Box]] = {}
        self.size: dict[str, float] = {}
        self._open: list[str] = []
        self._texts: list[list[str]] = []  # the text of each open element before its first child
        self._bare = False  # whether the innermost element has no child yet
        self._names: list[str] = []
        self._edges: dict[str, float] = {}

    def start(self, tag: str, attributes: Any) -> None:
        self._open.append(tag)
        self._texts.append([])
        self._bare = True
        if len(self._open) > MOST_LEVELS:
            raise DataError(f"over {MOST_LEVELS} nested elements; this is not an annotation file")
        if self._open[1:] == ["object"]:
            self._names, self._edges = [], {}

    def characters(self, text: str) -> None:
        if self._bare:
            self._texts[-1].append(text)

    def end(self, tag: str) -> None:
        place, text = self._open[1:], "".join(self._texts.pop()).strip()
        self._open.pop()
        self._bare = False
        if place in (["size", "width"], ["size", "height"]):
            self.size[tag] = _parse_number(text, tag)
        elif place == ["object", "name"]:
            self._names.append(text)
        elif place[:-1] == ["object", "bndbox"] and tag in EDGES:
            self._edges[tag] = _parse_number(text, tag)
        elif place == ["object", "bndbox"]:
            if missing := [edge for edge in EDGES if edge not in self._edges]:
                raise DataError(f"a box has no {missing[0]}")
        elif place == ["object"] and self._edges:
            for name in self._names:
                x0, y0, x1, y1 = (self._edges[edge] - 1 for edge in EDGES)
                self.boxes.setdefault(name, []).append((x0, y0, x1, y1))


def read_annotation(path: Path) -> Annotation:
    """Read an image's boxes; pixels count from 1 in the file. XML with declarations is refused, because entities may
    expand without limit. Raises DataError."""
    data, objects, parser = bytes(read_unpacked(path)), _Objects(), expat.ParserCreate()

    def refuse(*declaration: Any) -> None:
        raise DataError("declares a document type, which annotations do not have; remove the declaration")

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = objects.start, objects.end
    parser.CharacterDataHandler = objects.characters
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: over {MOST_BYTES >> 20} MB; this is not an annotation of an image")
    try:
        parser.Parse(data, True)
        width, height = (objects.size.get(name, 0.0) for name in ("width", "height"))
        if width <= 0 or height <= 0:
            raise DataError("no picture size; expected <size><width>500</width><height>375</height></size>")
    except expat.ExpatError as error:
        raise DataError(f"{path}:{error.lineno}: invalid XML: {expat.ErrorString(error.code)}") from None
    except (DataError, ValueError, LookupError) as error:  # also an unknown encoding
        raise DataError(f"{path}:{parser.CurrentLineNumber}: {error}") from None
    return Annotation(width, height, objects.boxes)


def _parse_number(text: str, name: str) -> float:
    try:
        number = float(text)
        if abs(number) < 1e9:
            return number
    except ValueError:
        pass
    raise DataError(f"{name} must be a number, not {text!r:.40}")
