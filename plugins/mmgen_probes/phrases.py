"""Captions with phrases whose places in the picture are known: from the data set, or from Flickr30k Entities."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmgen_vision.boxes import Box
from mmgen_vision.flickr30k_files import ANNOTATIONS, SENTENCES, read_annotation, read_sentences

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample


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
    results = []
    for example in examples:
        facts, captions = example.facts, example.facts.get("captions", ())
        parses = facts.get("parses") or [()] * len(captions)
        for text, phrases, parse in zip(captions, facts.get("phrases", ()), parses, strict=False):
            located_phrases = tuple(
                Phrase(first, end, tuple(tuple(facts["things"][place]["box"]) for place in places))
                for first, end, places in phrases
            )
            results.append(_captioned(example, field, text, located_phrases, parse))
    return results


def flickr30k(folder: Path, examples: Iterable[ResolvedExample], picture: str, field: str) -> list[Caption]:
    """The five sentences of each example's image, in the format of Flickr30k Entities. Images without files are left
    out.

    Raises DataError for files that cannot be read, with file and line.
    """
    for part in (SENTENCES, ANNOTATIONS):
        if not (folder / part).is_dir():
            raise DataError(
                f"annotations: {folder} has no folder {part}; give the one that Flickr30k Entities unpacks to"
            )
    results = []
    for example in examples:
        key = example.inputs.get(picture)
        stem = (
            re.sub(r"\.(jpe?g|png)$", "", key.rpartition("/")[2], flags=re.IGNORECASE) if isinstance(key, str) else ""
        )
        sentences, boxes = folder / SENTENCES / f"{stem}.txt", folder / ANNOTATIONS / f"{stem}.xml"
        if stem and sentences.exists() and boxes.exists():
            boxes_by_chain = read_annotation(boxes).boxes()
            for text, sentence_phrases in read_sentences(sentences):
                phrases = [
                    Phrase(phrase.first, phrase.end, tuple(boxes_by_chain.get(phrase.chain, ())))
                    for phrase in sentence_phrases
                ]
                results.append(_captioned(example, field, text, tuple(phrase for phrase in phrases if phrase.boxes)))
    return results


def _captioned(
    example: ResolvedExample, field: str, text: str, phrases: tuple[Phrase, ...], parse: Sequence[tuple[int, str]] = ()
) -> Caption:
    return Caption(replace(example, inputs={**example.inputs, field: text}), text, phrases, parse)
