"""Writes RefCOCO+'s format: a pickle of expressions, and COCO's annotations."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmgen.reading.export import (
    Exported,
    ExportedPicture,
    Exporter,
    number_or_text,
    save_json,
    text_input,
)

from ..export import split_roles
from .files import INSTANCES, REFS

TESTED = {"test": "testA"}  # our name of a split -> RefCOCO's


class RefcocoPlus(Exporter):
    """`refs(unc).p` and `instances.json`: every box of a picture is a thing."""

    name = "refcoco"
    required_labels = ("box",)

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        images: list[dict[str, Any]] = []
        annotations: list[dict[str, Any]] = []
        refs: list[dict[str, Any]] = []
        categories: dict[str, int] = {}
        things: dict[tuple[str, tuple[float, ...]], int] = {}

        def annotate(key: str, picture: ExportedPicture, box: Sequence[float], name: str) -> int:
            x0, y0, x1, y1 = picture.pixels(box)
            annotation_id = len(annotations) + 1
            category = categories.setdefault(name, len(categories) + 1)
            row = {"id": annotation_id, "image_id": number_or_text(key), "category_id": category, "iscrowd": 0}
            annotations.append(row | {"bbox": [x0, y0, x1 - x0, y1 - y0], "area": (x1 - x0) * (y1 - y0)})
            return things.setdefault((key, tuple(box)), annotation_id)

        for key, picture in exported.pictures.items():
            size = {"width": picture.width, "height": picture.height}
            images.append({"id": number_or_text(key), "file_name": picture.file, **size})
            for place, box in enumerate(picture.boxes):
                annotate(key, picture, box, picture.region_names[place] if picture.region_names else "thing")
        for split, examples in exported.splits.items():
            for example in examples:
                key, box, text = (
                    text_input(example, "image"),
                    tuple(example.labels["box"]),
                    text_input(example, "expression"),
                )
                if (key, box) not in things:
                    annotate(key, exported.pictures[key], box, "thing")
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
        (folder / REFS.format(splitter="unc", ending="p")).write_bytes(pickle.dumps(refs, protocol=2))
        known = [{"id": category_id, "name": name} for name, category_id in categories.items()]
        save_json(folder / INSTANCES, {"images": images, "annotations": annotations, "categories": known})
        return {"type": "refcoco", "release": "refcoco+", **split_roles([*exported.splits], TESTED)}
