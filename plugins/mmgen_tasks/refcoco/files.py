"""Reads RefCOCO, RefCOCO+, RefCOCOg (Yu et al., 2016): expressions from `refs(...).p`, boxes from `instances.json`."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen_vision.boxes import Box, relative
from mmgen_vision.find_files import Finder

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.files import image_key
from mmgen.reading.text import image_id, kind, parse_json, read_items, read_list, read_text, require_keys, tidy

from ..dataset import CountedExamples, PublishedDataset, numbers
from ..pickles import PICKLES, read_pickle

if TYPE_CHECKING:
    from .config import Refcoco

REFS, INSTANCES = "refs({splitter}).{ending}", "instances.json"
NAMES = {"refcoco": "RefCOCO", "refcoco+": "RefCOCO+", "refcocog": "RefCOCOg"}
SERVER = "https://bvisionweb1.cs.unc.edu/licheng/referit/data"


class Files(NamedTuple):
    """The files of all splits together."""

    refs: Path
    instances: Path


class Thing(NamedTuple):
    """An annotated thing of a picture."""

    image: str  # id of the picture
    box: Box | None  # None for a box outside of the picture
    name: str


class Instances(NamedTuple):
    """`instances.json`. `keys`: picture id -> the key of its features; `things`: by id; `of`: picture id -> things."""

    keys: dict[str, str]
    things: dict[str, Thing]
    of: dict[str, list[Thing]]


class RefcocoFiles(PublishedDataset):
    """Examples of a `Refcoco` config, one per expression.

    id       the expression's, `sent_id`
    inputs   "image": its key; "expression"
    labels   "box": (x0, y0, x1, y1), relative to the picture's size
    facts    image; category: the name of the thing's category; ref: the thing's `ref_id`

    A picture's boxes are those of all its things in `instances.json`.
    """

    licence = "expressions: not stated; boxes: CC BY 4.0; images: their photographers' terms"
    source = "github.com/lichengunc/refer"
    advice = "put the files there, or name other files in data.refs and data.instances"
    boxed = "expression"
    config: Refcoco

    def __init__(self, config: Refcoco) -> None:
        self.name = NAMES[config.release]
        super().__init__(config)

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder, (self.config.release,))

    def find(self, finder: Finder, split: str) -> Files:
        config = self.config
        source = f"web.archive.org/web/2022/{SERVER}/{config.release}.zip (the original server is down)"
        refs = (
            [config.refs]
            if config.refs
            else [REFS.format(splitter=config.splitter(), ending=ending) for ending in ("p", "json")]
        )
        return Files(finder.file(refs, source), finder.file([config.instances or INSTANCES], source))

    def main_file(self, split: str) -> Path:
        return self.files[split].refs

    def read(self, split: str) -> CountedExamples:
        if split not in self._read_expressions:
            raise DataError(f"{self.main_file(split)}: has no expressions of the split '{split}'")
        return self._read_expressions[split]

    def boxes(self, key: str) -> tuple[list[Box], list[str]] | None:
        things = [(thing.box, thing.name) for thing in self._by_key.get(key, ()) if thing.box is not None]
        return ([box for box, _ in things], [name for _, name in things]) if things else None

    @cached_property
    def _by_key(self) -> dict[str, list[Thing]]:
        return {
            key: self._read_instances.of.get(picture_id, []) for picture_id, key in self._read_instances.keys.items()
        }

    @cached_property
    def _read_instances(self) -> Instances:
        return read_instances(next(iter(self.files.values())).instances)

    @cached_property
    def _read_expressions(self) -> dict[str, CountedExamples]:
        """All splits that are used; one file has them all."""
        path = next(iter(self.files.values())).refs
        pickled = (path.with_suffix("") if path.suffix == ".gz" else path).suffix in PICKLES
        refs = read_pickle(path) if pickled else parse_json(read_text(path), path)
        if not isinstance(refs, list):
            raise DataError(f"{path}: a file of expressions must be a list, not {kind(refs)}")
        splits: dict[str, CountedExamples] = {}
        seen: set[str] = set()

        def take(ref: Any) -> None:
            require_keys(ref, "split", "ann_id", "sentences")
            split = tidy(ref["split"], "split")
            if split in self.files:
                _add_expressions(
                    ref, self._read_instances, seen, splits.setdefault(split, CountedExamples([], Counter()))
                )

        read_items(refs, path, "refs", take)
        return splits


def _add_expressions(ref: dict[str, Any], instances: Instances, seen: set[str], read: CountedExamples) -> None:
    """Adds the expressions of a thing to `read`. `seen`: the ids of the expressions so far; ids must be unique."""
    annotation_id = image_id(ref["ann_id"], "ann_id", plain=True)
    if annotation_id not in instances.things:
        raise DataError(
            f"ann_id {annotation_id:.60} is not among the annotations of instances.json; use two files of the same "
            "release"
        )
    thing = instances.things[annotation_id]
    if "image_id" in ref and (image := image_id(ref["image_id"], "image_id", plain=True)) != thing.image:
        raise DataError(
            f"ann_id {annotation_id:.60} is of image_id {image:.60} here, but of {thing.image:.60} in instances.json; "
            "use two files of the same release"
        )
    facts = {"image": instances.keys[thing.image], "category": thing.name}
    if "ref_id" in ref:
        facts["ref"] = image_id(ref["ref_id"], "ref_id", plain=True)
    if not isinstance(ref["sentences"], list):
        raise DataError(f"sentences must be a list, not {kind(ref['sentences'])}")
    for number, sentence in enumerate(ref["sentences"]):
        try:
            require_keys(sentence, "sent_id", "sent")
            name = image_id(sentence["sent_id"], "sent_id", plain=True)
            text = tidy(sentence["sent"], "sent")
        except DataError as error:
            raise DataError(f"sentences[{number}]: {error}") from None
        if name in seen:
            raise DataError(f"sentences[{number}]: duplicate sent_id {name:.60}")
        seen.add(name)
        if not text or thing.box is None:
            read.counts["without_box" if text else "without_text"] += 1
            continue
        inputs = {"image": facts["image"], "expression": text}
        read.examples.append(Example(name, inputs, (), facts, {"box": thing.box}))


def read_instances(path: Path) -> Instances:
    """Read pictures, categories and boxes in COCO's format. Raises DataError."""
    table, annotations = read_list(path, "annotations", "COCO annotations")
    sizes: dict[str, tuple[float, ...]] = {}
    names: dict[str, str] = {}
    instances = Instances({}, {}, {})

    def picture(row: Any) -> None:
        require_keys(row, "id", "width", "height")
        picture_id = image_id(row["id"], "id", plain=True)
        sizes[picture_id] = width, height = numbers([row["width"], row["height"]], 2, "width and height")
        if width <= 0 or height <= 0:
            raise DataError(f"the picture's size is {width:g} x {height:g} pixels; width and height must be positive")
        instances.keys[picture_id] = (
            image_key(tidy(row["file_name"], "file_name")) if row.get("file_name") else picture_id
        )

    def category(row: Any) -> None:
        require_keys(row, "id", "name")
        names[image_id(row["id"], "id", plain=True)] = tidy(row["name"], "name")

    def thing(row: Any) -> None:
        require_keys(row, "id", "image_id", "bbox")
        annotation_id, image = (image_id(row[key], key, plain=True) for key in ("id", "image_id"))
        if image not in sizes:
            raise DataError(f"image_id {image:.60} is not among the images")
        if annotation_id in instances.things:
            raise DataError(f"duplicate id {annotation_id:.60}")
        x, y, width, height = numbers(row["bbox"], 4, "bbox")
        name = names.get(image_id(row["category_id"], "category_id", plain=True), "") if "category_id" in row else ""
        instances.things[annotation_id] = Thing(image, relative((x, y, x + width, y + height), *sizes[image]), name)
        instances.of.setdefault(image, []).append(instances.things[annotation_id])

    for key, take in (("images", picture), ("categories", category)):
        if not isinstance(table.get(key), list):
            raise DataError(f"{path}: not a file of COCO annotations: no list '{key}'")
        read_items(table[key], path, key, take)
    read_items(annotations, path, "annotations", thing)
    return instances
