"""Flickr30K Entities (Plummer et al., 2015): captions with marked phrases, and the boxes of what the phrases name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.parsers import expat

from mmgen.errors import DataError
from mmgen.features.store import image_key
from mmgen.reading.finding import Finder
from mmgen.reading.text import read_text, tidy, unpacked
from mmgen.tensors import Example

from ..dataset import Box, PublishedDataset, Read, relative

if TYPE_CHECKING:
    from .config import Flickr30kEntities

SOURCE = "github.com/BryanPlummer/flickr30k_entities"
PHRASE = re.compile(r"\[/EN#(\d+)((?:/[^\s/\[\]]+)+)\s+([^\[\]]*)\]")
NAME = re.compile(r"\w[\w.-]*")
MOST_BYTES = 1 << 22  # of an image's boxes
MOST_LEVELS = 16
EDGES = ("xmin", "ymin", "xmax", "ymax")


class Phrase(NamedTuple):
    """A marked phrase of a caption: characters `first` to `end` name the chain of things `chain`."""

    first: int
    end: int
    chain: str
    types: tuple[str, ...]


class Files(NamedTuple):
    """The files of a split."""

    names: Path
    sentences: Path
    annotations: Path


class Flickr30kFiles(PublishedDataset):
    """Examples of a `Flickr30kEntities` config: in the split to evaluate one a phrase, in others one a caption.

    id       image, number of the caption and, in the split to evaluate, of the phrase: "1000092795-0-2"
    inputs   "image": its key; "caption"
    labels   "phrases": ((first character, end, box), ...), the box around all boxes of what the phrase names, relative
             to the picture's size; phrases without a box are left out
    facts    image; types: one for each phrase (people, clothing, ...); in the split to evaluate type
    """

    name = "Flickr30K Entities"
    licence = "not stated; images: for non-commercial research and education, their photographers' terms"
    source = SOURCE
    advice = "put them there, or name others in data.files"
    boxed = "phrase"
    config: Flickr30kEntities

    def find(self, finder: Finder, split: str) -> Files:
        names = self.config.files.get(split, Path(f"{split}.txt"))
        advice = f"unpack annotations.zip of {SOURCE} in data.folder"
        return Files(
            finder.file([names], f"{SOURCE}, {split}.txt"),
            finder.subfolder("Sentences", advice),
            finder.subfolder("Annotations", advice),
        )

    def named(self, split: str) -> Path:
        return self.files[split].names

    def read(self, split: str) -> Read:
        files, counts = self.files[split], Counter[str]()
        names = read_names(files.names)
        places = [(name, files.sentences / f"{name}.txt", files.annotations / f"{name}.xml") for name in names]
        if absent := [path for _, *two in places for path in two if not path.is_file()]:
            raise DataError(
                f"{files.names}: {len(absent):,} files of its images are missing, {absent[0]} the first; unpack "
                f"annotations.zip of {SOURCE} again"
            )
        found = [
            example
            for name, sentences, annotations in places
            for example in self._of_image(split, name, read_sentences(sentences), read_boxes(annotations), counts)
        ]
        return Read(found, counts)

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
            known = []
            for place, phrase in enumerate(phrases):
                box = boxes.get(phrase.chain)
                counts["without_box"] += box is None
                if box is not None:
                    known.append((place, (phrase.first, phrase.end, box), phrase.types[0]))
            counts["without_phrase"] += not known
            own, inputs = f"{name}-{number}", {"image": key, "caption": caption}
            if split == self.config.evaluate:
                for place, phrase_, type_ in known:
                    facts = {"image": key, "type": type_, "types": [type_]}
                    yield Example(f"{own}-{place}", inputs, (), facts, {"phrases": (phrase_,)})
            elif known:
                facts = {"image": key, "types": [type_ for _, _, type_ in known]}
                yield Example(own, inputs, (), facts, {"phrases": tuple(phrase_ for _, phrase_, _ in known)})


def read_names(path: Path) -> list[str]:
    """The images of a split, a name a line. Raises DataError."""
    found: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if name := line.strip():
            if len(name) > 200 or not NAME.fullmatch(name):
                raise DataError(
                    f"{path}:{number}: '{name:.60}' is no name of an image: letters, digits, - and . make it"
                )
            if name in found:
                raise DataError(f"{path}:{number}: the image {name} is line {found[name]}'s already")
            found[name] = number
    return [*found]


def read_sentences(path: Path) -> list[tuple[str, list[Phrase]]]:
    """The captions of an image, each with its phrases. Raises DataError."""
    found = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        try:
            if marked := tidy(line, "the caption"):
                found.append(unmarked(marked))
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
    return found


def unmarked(line: str) -> tuple[str, list[Phrase]]:
    """A caption without its marks, and what they mark."""
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
            f"'{text[text.index('[/EN#') :]:.60}' is no marked phrase; they are like [/EN#283585/people Two men]"
        )
    return text, phrases


class _Objects:
    """What an annotation tells, as its elements end."""

    def __init__(self) -> None:
        self.boxes: dict[str, list[tuple[float, ...]]] = {}
        self.size: dict[str, float] = {}
        self._open: list[str] = []
        self._texts: list[list[str]] = []  # of each open element, what stands before its first child
        self._bare = False  # whether the innermost one has no child yet
        self._names: list[str] = []
        self._edges: dict[str, float] = {}

    def start(self, tag: str, attributes: Any) -> None:
        self._open.append(tag)
        self._texts.append([])
        self._bare = True
        if len(self._open) > MOST_LEVELS:
            raise DataError(f"over {MOST_LEVELS} elements inside one another; that is no annotation")
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
            self.size[tag] = _number(text, tag)
        elif place == ["object", "name"]:
            self._names.append(text)
        elif place[:-1] == ["object", "bndbox"] and tag in EDGES:
            self._edges[tag] = _number(text, tag)
        elif place == ["object", "bndbox"]:
            if missing := [edge for edge in EDGES if edge not in self._edges]:
                raise DataError(f"a box without {missing[0]}")
        elif place == ["object"] and self._edges:
            for name in self._names:
                self.boxes.setdefault(name, []).append(tuple(self._edges[edge] for edge in EDGES))


def read_boxes(path: Path) -> dict[str, Box | None]:
    """Chain of things -> the box around all its boxes, relative to the picture's size; None where nothing of it lies in
    the picture. Pixels count from 1 in the file. XML that declares anything is refused: entities may grow without end.
    Raises DataError."""
    data, objects, parser = bytes(unpacked(path)), _Objects(), expat.ParserCreate()

    def refuse(*declared: Any) -> None:
        raise DataError("declares a document type; annotations have none, and it is not read")

    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = objects.start, objects.end
    parser.CharacterDataHandler = objects.characters
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: over {MOST_BYTES >> 20} MB; that is no annotation of an image")
    try:
        parser.Parse(data, True)
        width, height = (objects.size.get(name, 0.0) for name in ("width", "height"))
        if width <= 0 or height <= 0:
            raise DataError("has no size of the picture, <size><width>500</width><height>375</height></size>")
    except expat.ExpatError as error:
        raise DataError(f"{path}:{error.lineno}: not whole XML: {expat.ErrorString(error.code)}") from None
    except (DataError, ValueError, LookupError) as error:  # an encoding that there is not
        raise DataError(f"{path}:{parser.CurrentLineNumber}: {error}") from None
    found = {}
    for name, boxes in objects.boxes.items():
        around = (
            *(min(box[edge] for box in boxes) for edge in (0, 1)),
            *(max(box[edge] for box in boxes) for edge in (2, 3)),
        )
        found[name] = relative([edge - 1 for edge in around], width, height)
    return found


def _number(text: str, name: str) -> float:
    try:
        number = float(text)
        if abs(number) < 1e9:
            return number
    except ValueError:
        pass
    raise DataError(f"{name} must be a number, and is '{text:.40}'")
