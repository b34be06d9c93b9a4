"""Captions whose phrases are known to be in certain places of the picture: from the data set, or from files of
Flickr30k Entities."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmgen.errors import DataError
from mmgen.tensors import ResolvedExample

Box = tuple[float, float, float, float]  # x0, y0, x1, y1, relative to the picture
ENTITY = re.compile(r"\[/EN#(\d+)(?:/\S+)? ([^\]]*)\]")
IMAGES = ("", ".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Phrase:
    """Characters of a caption that name what is in these boxes."""

    first: int
    end: int
    boxes: tuple[Box, ...]


@dataclass(frozen=True)
class Caption:
    """One caption of an example, which has it as its input. `parse`: of each of its words the head, from 1, 0 for the
    root, and the relation; empty where that is not known."""

    example: ResolvedExample
    text: str
    phrases: tuple[Phrase, ...]
    parse: Sequence[tuple[int, str]] = ()


def known(examples: Iterable[ResolvedExample], field: str) -> list[Caption]:
    """What data sets tell in `Example.facts`: "captions", "phrases" (for each caption [first character, end, [positions
    in things]]), "things" (each with its "box"), and perhaps "parses" (for each caption a `Caption.parse`)."""
    found = []
    for example in examples:
        facts, captions = example.facts, example.facts.get("captions", ())
        parses = facts.get("parses") or [()] * len(captions)
        for text, phrases, parse in zip(captions, facts.get("phrases", ()), parses, strict=False):
            told = tuple(
                Phrase(first, end, tuple(tuple(facts["things"][place]["box"]) for place in places))
                for first, end, places in phrases
            )
            found.append(_captioned(example, field, text, told, parse))
    return found


def flickr30k(folder: Path, examples: Iterable[ResolvedExample], picture: str, field: str) -> list[Caption]:
    """The five sentences of each example's image, in the format of Flickr30k Entities. Images without files are left
    out.

    Raises DataError for files that cannot be read, with file and line.
    """
    for part in ("Sentences", "Annotations"):
        if not (folder / part).is_dir():
            raise DataError(
                f"annotations: {folder} has no folder {part}; give the one that Flickr30k Entities unpacks to"
            )
    found = []
    for example in examples:
        key = example.inputs.get(picture)
        stem = _stem(key) if isinstance(key, str) else ""
        sentences, boxes = folder / "Sentences" / f"{stem}.txt", folder / "Annotations" / f"{stem}.xml"
        if stem and sentences.exists() and boxes.exists():
            placed = read_boxes(boxes)
            found += [_captioned(example, field, text, tuple(told)) for text, told in read_sentences(sentences, placed)]
    return found


def read_sentences(path: Path, boxes: dict[str, list[Box]]) -> Iterator[tuple[str, list[Phrase]]]:
    """`[/EN#283585/people Two young guys] with ...`: each line's text, and its phrases that have boxes."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        text, told, place = "", [], 0
        for match in ENTITY.finditer(line):
            text += line[place : match.start()]
            if boxes.get(match[1]):
                told.append(Phrase(len(text), len(text) + len(match[2]), tuple(boxes[match[1]])))
            text, place = text + match[2], match.end()
        text += line[place:]
        if "[/EN#" in text:
            raise DataError(f"{path}:{number}: a phrase is not closed; write [/EN#number/kind words]")
        yield text.rstrip(), told


def read_boxes(path: Path) -> dict[str, list[Box]]:
    """Entity number -> its boxes, relative to the picture."""
    try:
        root = ElementTree.parse(path).getroot()
        width, height = (float(root.findtext(f"size/{side}") or "") for side in ("width", "height"))
        found: dict[str, list[Box]] = {}
        for thing in root.iter("object"):
            box = thing.find("bndbox")
            if box is None:
                continue
            x0, y0, x1, y1 = (float(box.findtext(side) or "") for side in ("xmin", "ymin", "xmax", "ymax"))
            for name in thing.findall("name"):
                found.setdefault(name.text or "", []).append((x0 / width, y0 / height, x1 / width, y1 / height))
        return found
    except ElementTree.ParseError as error:
        raise DataError(f"{path}:{error.position[0]}: not XML: {error}") from None
    except (TypeError, ValueError, ZeroDivisionError):
        raise DataError(
            f"{path}: an annotation lacks its size or a number of a box; is this Flickr30k Entities?"
        ) from None


def overlap(box: Sequence[float], other: Sequence[float]) -> float:
    """Intersection over union."""
    wide = min(box[2], other[2]) - max(box[0], other[0])
    tall = min(box[3], other[3]) - max(box[1], other[1])
    shared = max(wide, 0.0) * max(tall, 0.0)
    whole = _area(box) + _area(other) - shared
    return shared / whole if whole > 0 else 0.0


def _area(box: Sequence[float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _stem(key: str) -> str:
    name = key.rpartition("/")[2]
    return next((name.removesuffix(end) for end in IMAGES if end and name.lower().endswith(end)), name)


def _captioned(
    example: ResolvedExample, field: str, text: str, phrases: tuple[Phrase, ...], parse: Sequence[tuple[int, str]] = ()
) -> Caption:
    return Caption(replace(example, inputs={**example.inputs, field: text}), text, phrases, parse)
