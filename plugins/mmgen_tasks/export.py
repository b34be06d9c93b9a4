"""The tasks' formats written: VQA 2.0, NLVR2, RefCOCO, Flickr30K Entities, COCO's captions. (VCR's: `export_vcr`.)"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from mmgen.errors import DataError
from mmgen.reading.export import (
    Exported,
    ExportedPicture,
    Exporter,
    number_or_text,
    save_captions,
    save_json,
    save_json_lines,
    told,
)
from mmgen.tensors import Example

from .nlvr2 import pictures_of
from .vqa import YEARS

VOCABULARY = "answers.txt"
DEV, TESTED = {"val": "dev", "test": "test1"}, {"test": "testA"}  # our names of splits -> NLVR2's, RefCOCO's


def named(splits: Sequence[str], names: dict[str, str]) -> dict[str, str]:
    """Which splits to learn from, watch and evaluate, as far as they are there."""
    roles = {"train": "train", "validate_on": "val", "evaluate": "test"}
    return {key: names.get(split, split) for key, split in roles.items() if split in splits}


class Vqa2(Exporter):
    """Questions, annotations (those of the test split too, where they are known), and the answers to choose from."""

    name = "vqa2"
    labels = ("answers",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            year = YEARS.get(split, split)
            questions = {"questions": [_question(example) for example in examples]}
            save_json(folder / f"v2_OpenEnded_mscoco_{year}_questions.json", questions)
            if rows := [_answers(example) for example in examples if example.targets]:
                save_json(folder / f"v2_mscoco_{year}_annotations.json", {"annotations": rows})
        (folder / VOCABULARY).write_text(
            "".join(f"{answer}\n" for answer in exported.labels["answers"]), encoding="utf-8"
        )
        return {"type": "vqa_answers", "vocabulary": VOCABULARY, **named([*exported.splits], {})}


def _question(example: Example) -> dict[str, Any]:
    ids = {"question_id": number_or_text(example.id), "image_id": number_or_text(told(example, "image"))}
    return {**ids, "question": told(example, "question")}


def _answers(example: Example) -> dict[str, Any]:
    given = [
        {"answer": answer, "answer_confidence": "yes", "answer_id": place}
        for place, answer in enumerate(example.targets, 1)
    ]
    known = {name: example.facts[name] for name in ("question_type", "answer_type") if name in example.facts}
    row = {"question_id": number_or_text(example.id), "image_id": number_or_text(told(example, "image")), **known}
    common = example.inputs.get("answer") or Counter(example.targets).most_common(1)[0][0]
    return {**row, "multiple_choice_answer": common, "answers": given}


class Nlvr2(Exporter):
    """JSON lines. An example's id and pictures must be named as NLVR2 names them."""

    name = "nlvr2"
    labels = ("truth",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for split, examples in exported.splits.items():
            rows = []
            for example in examples:
                if example.shown("image") != pictures_of(example.id):
                    raise DataError(
                        f"example '{example.id}': NLVR2's ids are split-set-pair-sentence, and its pictures "
                        "split-set-pair-img0 and -img1"
                    )
                row = {"identifier": example.id, "sentence": told(example, "statement")}
                rows.append(row | {"label": str(example.labels["truth"])})
            save_json_lines(folder / f"{DEV.get(split, split)}.json", rows)
        return {"type": "nlvr2", **named([*exported.splits], DEV)}


class RefcocoPlus(Exporter):
    """`refs(unc).p` and `instances.json`: every box of a picture is a thing."""

    name = "refcoco"
    labels = ("box",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        refs: list[dict[str, Any]] = []
        categories: dict[str, int] = {}
        things: dict[tuple[str, tuple[float, ...]], int] = {}

        def annotated(key: str, picture: ExportedPicture, box: Sequence[float], name: str) -> int:
            x0, y0, x1, y1 = picture.pixels(box)
            own = len(annotations) + 1
            category = categories.setdefault(name, len(categories) + 1)
            row = {"id": own, "image_id": number_or_text(key), "category_id": category, "iscrowd": 0}
            annotations.append(row | {"bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0)})
            return things.setdefault((key, tuple(box)), own)

        for key, picture in exported.pictures.items():
            size = {"width": picture.width, "height": picture.height}
            images.append({"id": number_or_text(key), "file_name": picture.file, **size})
            for place, box in enumerate(picture.boxes):
                annotated(key, picture, box, picture.labels[place] if picture.labels else "thing")
        for split, examples in exported.splits.items():
            for example in examples:
                key, box, text = told(example, "image"), tuple(example.labels["box"]), told(example, "expression")
                if (key, box) not in things:
                    annotated(key, exported.pictures[key], box, "thing")
                sentence = {"sent_id": number_or_text(example.id), "sent": text, "raw": text, "tokens": text.split()}
                refs.append(
                    {
                        "ref_id": len(refs) + 1,
                        "ann_id": things[key, box],
                        "category_id": annotations[things[key, box] - 1]["category_id"],
                        "image_id": number_or_text(key),
                        "file_name": exported.pictures[key].file,
                        "split": TESTED.get(split, split),
                        "sent_ids": [sentence["sent_id"]],
                        "sentences": [sentence],
                    }
                )
        (folder / "refs(unc).p").write_bytes(pickle.dumps(refs, protocol=2))
        known = [{"id": own, "name": name} for name, own in categories.items()]
        save_json(folder / "instances.json", {"images": images, "annotations": annotations, "categories": known})
        return {"type": "refcoco", "release": "refcoco+", **named([*exported.splits], TESTED)}


class Flickr30k(Exporter):
    """Sentences with marked phrases, annotations in XML, and the images of every split."""

    name = "flickr30k"
    labels = ("phrases",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        for place in ("Sentences", "Annotations"):
            (folder / place).mkdir()
        for split, examples in exported.splits.items():
            images: dict[str, dict[str, list[Example]]] = {}
            for example in examples:  # each a phrase; those of a caption have its words
                captions = images.setdefault(told(example, "image"), {})
                captions.setdefault(example.id.rpartition("-")[0], []).append(example)
            (folder / f"{split}.txt").write_text("".join(f"{key}\n" for key in images), encoding="utf-8")
            for key, captions in images.items():
                chains: dict[tuple[float, ...], int] = {}
                lines = [_marked(phrases, chains) for phrases in captions.values()]
                (folder / f"Sentences/{key}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
                xml = _annotation(exported.pictures[key], chains)
                (folder / f"Annotations/{key}.xml").write_text(xml, encoding="utf-8")
        return {"type": "flickr30k_entities", **named([*exported.splits], {})}


def _marked(phrases: Sequence[Example], chains: dict[tuple[float, ...], int]) -> str:
    """A caption with its phrases marked. `chains`: box -> its number."""
    caption, line, end = told(phrases[0], "caption"), "", 0
    for example in phrases:
        for first, last, box in example.labels["phrases"]:
            if first < end or told(example, "caption") != caption:
                raise DataError(f"example '{example.id}': phrases of a caption must stand behind one another")
            chain = chains.setdefault(tuple(box), len(chains) + 1)
            kind = str(example.facts.get("type", "other")).replace(" ", "")
            line += f"{caption[end:first]}[/EN#{chain}/{kind} {caption[first:last]}]"
            end = last
    return line + caption[end:]


def _annotation(picture: ExportedPicture, chains: dict[tuple[float, ...], int]) -> str:
    """Boxes in whole pixels, which count from 1."""
    lines = [f"<annotation>\n  <filename>{escape(picture.file)}</filename>"]
    size = f"<width>{picture.width}</width><height>{picture.height}</height><depth>3</depth>"
    lines.append(f"  <size>{size}</size>")
    for box, chain in chains.items():
        edges = zip(("xmin", "ymin", "xmax", "ymax"), picture.pixels(box), strict=True)
        told = "".join(f"<{name}>{round(edge) + 1}</{name}>" for name, edge in edges)
        lines.append(f"  <object><name>{chain}</name><bndbox>{told}</bndbox></object>")
    return "\n".join([*lines, "</annotation>\n"])


class CocoCaptions(Exporter):
    """Captions in COCO's format, a file a split. Who reads them puts the split before an image's number."""

    name = "coco_captions"

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        files = {}
        for split, examples in exported.splits.items():
            path = folder / "annotations" / f"captions_{YEARS.get(split, split)}.json"
            if not save_captions(path, examples, exported):
                raise DataError(f"the split '{split}' has no captions")
            files[split] = [path.relative_to(folder).as_posix()]
        return {"type": "coco_captions", "files": files, **named([*exported.splits], {})}
