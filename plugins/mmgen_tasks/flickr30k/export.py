"""Writes Flickr30K Entities' format: sentences with marked phrases, and boxes in XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from mmgen_vl.flickr30k_files import ANNOTATIONS, EDGES, SENTENCES

from mmgen.errors import DataError
from mmgen.reading.export import (
    Exported,
    ExportedPicture,
    Exporter,
    text_input,
)
from mmgen.tensors import Example

from ..export import split_roles


class Flickr30k(Exporter):
    """Sentences with marked phrases, annotations in XML, and the images of every split."""

    name = "flickr30k"
    required_labels = ("phrases",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for name in (SENTENCES, ANNOTATIONS):
            (folder / name).mkdir()
        for split, examples in exported.splits.items():
            images: dict[str, dict[str, list[Example]]] = {}
            for example in examples:  # one per phrase; examples of one caption have the same text
                captions = images.setdefault(text_input(example, "image"), {})
                captions.setdefault(example.id.rpartition("-")[0], []).append(example)
            (folder / f"{split}.txt").write_text("".join(f"{key}\n" for key in images), encoding="utf-8")
            for key, captions in images.items():
                chains: dict[tuple[float, ...], int] = {}
                lines = [_mark_phrases(phrases, chains) for phrases in captions.values()]
                (folder / SENTENCES / f"{key}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
                xml = _annotation(exported.pictures[key], chains)
                (folder / ANNOTATIONS / f"{key}.xml").write_text(xml, encoding="utf-8")
        return {"type": "flickr30k_entities", **split_roles([*exported.splits], {})}


def _mark_phrases(phrases: Sequence[Example], chains: dict[tuple[float, ...], int]) -> str:
    """A caption with its phrases marked. `chains`: box -> the number of its chain."""
    caption, line, end = text_input(phrases[0], "caption"), "", 0
    for example in phrases:
        for first, last, box in example.labels["phrases"]:
            if first < end or text_input(example, "caption") != caption:
                raise DataError(f"example '{example.id}': phrases of a caption must not overlap and must be in order")
            chain = chains.setdefault(tuple(box), len(chains) + 1)
            kind = str(example.facts.get("type", "other")).replace(" ", "")
            line += f"{caption[end:first]}[/EN#{chain}/{kind} {caption[first:last]}]"
            end = last
    return line + caption[end:]


def _annotation(picture: ExportedPicture, chains: dict[tuple[float, ...], int]) -> str:
    """Boxes in whole pixels, counted from 1."""
    lines = [f"<annotation>\n  <filename>{escape(picture.file)}</filename>"]
    size = f"<width>{picture.width}</width><height>{picture.height}</height><depth>3</depth>"
    lines.append(f"  <size>{size}</size>")
    for box, chain in chains.items():
        edges = zip(EDGES, picture.pixels(box), strict=True)
        edge_elements = "".join(f"<{name}>{round(edge) + 1}</{name}>" for name, edge in edges)
        lines.append(f"  <object><name>{chain}</name><bndbox>{edge_elements}</bndbox></object>")
    return "\n".join([*lines, "</annotation>\n"])
