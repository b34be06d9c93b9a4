"""RefCOCO, RefCOCO+ and RefCOCOg (Yu et al., 2016): expressions from `refs(...).p`, boxes from `instances.json`."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mmgen_vl.boxes import Box, relative

from mmgen.errors import DataError
from mmgen.files import image_key
from mmgen.reading.finding import Finder
from mmgen.reading.text import image_id, kind, parse_json, read_items, read_list, read_text, require_keys, tidy
from mmgen.tensors import Example

from ..dataset import PublishedDataset, Read, numbers
from ..pickles import PICKLES, read_pickle

if TYPE_CHECKING:
    from .config import Refcoco

REFS, INSTANCES = "refs({splitter}).{ending}", "instances.json"
NAMES = {"refcoco": "RefCOCO", "refcoco+": "RefCOCO+", "refcocog": "RefCOCOg"}
SERVER = "https://bvisionweb1.cs.unc.edu/licheng/referit/data"


class Files(NamedTuple):
    """The files of all splits."""

    refs: Path
    instances: Path


class Thing(NamedTuple):
    """An annotated thing of a picture."""

    image: str  # id of the picture
    box: Box | None  # None where nothing of it lies in the picture
    name: str


class Instances(NamedTuple):
    """`instances.json`. `keys`: picture id -> the key of its features; `things`: by id; `of`: picture id -> things."""

    keys: dict[str, str]
    things: dict[str, Thing]
    of: dict[str, list[Thing]]


class RefcocoFiles(PublishedDataset):
    """Examples of a `Refcoco` config, an expression each.

    id       the expression's, `sent_id`
    inputs   "image": its key; "expression"
    labels   "box": (x0, y0, x1, y1), relative to the picture's size
    facts    image; category: what the thing is called; ref: the thing's `ref_id`

    A picture's boxes are those of all its things in `instances.json`.
    """

    licence = "expressions: not stated; boxes: CC BY 4.0; images: their photographers' terms"
    source = "github.com/lichengunc/refer"
    advice = "put them there, or name others in data.refs and data.instances"
    boxed = "expression"
    config: Refcoco

    def __init__(self, config: Refcoco) -> None:
        self.name = NAMES[config.release]
        super().__init__(config)

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder, (self.config.release,))

    def find(self, finder: Finder, split: str) -> Files:
        config = self.config
        where = f"web.archive.org/web/2022/{SERVER}/{config.release}.zip (its own server is down)"
        refs = (
            [config.refs]
            if config.refs
            else [REFS.format(splitter=config.splitter(), ending=ending) for ending in ("p", "json")]
        )
        return Files(finder.file(refs, where), finder.file([config.instances or INSTANCES], where))

    def named(self, split: str) -> Path:
        return self.files[split].refs

    def read(self, split: str) -> Read:
        if split not in self._expressions:
            raise DataError(f"{self.named(split)}: has no expressions of the split '{split}'")
        return self._expressions[split]

    def boxes(self, key: str) -> tuple[list[Box], list[str]] | None:
        there = [(thing.box, thing.name) for thing in self._by_key.get(key, ()) if thing.box is not None]
        return ([box for box, _ in there], [name for _, name in there]) if there else None

    @cached_property
    def _by_key(self) -> dict[str, list[Thing]]:
        return {key: self._instances.of.get(own, []) for own, key in self._instances.keys.items()}

    @cached_property
    def _instances(self) -> Instances:
        return read_instances(next(iter(self.files.values())).instances)

    @cached_property
    def _expressions(self) -> dict[str, Read]:
        """All splits that are used: they stand in one file."""
        path = next(iter(self.files.values())).refs
        pickled = (path.with_suffix("") if path.suffix == ".gz" else path).suffix in PICKLES
        refs = read_pickle(path) if pickled else parse_json(read_text(path), path)
        if not isinstance(refs, list):
            raise DataError(f"{path}: not a file of expressions: it is {kind(refs)}, and must be a list")
        found: dict[str, Read] = {}
        seen: set[str] = set()

        def take(ref: Any) -> None:
            require_keys(ref, "split", "ann_id", "sentences")
            split = tidy(ref["split"], "split")
            if split in self.files:
                _take(ref, self._instances, seen, found.setdefault(split, Read([], Counter())))

        read_items(refs, path, "refs", take)
        return found


def _take(ref: dict[str, Any], instances: Instances, seen: set[str], read: Read) -> None:
    """Adds the expressions of a thing. `seen`: their ids so far, which must differ."""
    own = image_id(ref["ann_id"], "ann_id", plain=True)
    if own not in instances.things:
        raise DataError(f"ann_id {own:.60} is not among the annotations of instances.json; do the two belong together?")
    thing = instances.things[own]
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
            raise DataError(f"sentences[{number}]: sent_id {name:.60} came before")
        seen.add(name)
        if not text or thing.box is None:
            read.counts["without_box" if text else "without_text"] += 1
            continue
        inputs = {"image": facts["image"], "expression": text}
        read.examples.append(Example(name, inputs, (), facts, {"box": thing.box}))


def read_instances(path: Path) -> Instances:
    """Pictures, categories and boxes in COCO's format. Raises DataError."""
    table, annotations = read_list(path, "annotations", "COCO annotations")
    sizes: dict[str, tuple[float, ...]] = {}
    names: dict[str, str] = {}
    found = Instances({}, {}, {})

    def picture(row: Any) -> None:
        require_keys(row, "id", "width", "height")
        own = image_id(row["id"], "id", plain=True)
        sizes[own] = width, height = numbers([row["width"], row["height"]], 2, "width and height")
        if width <= 0 or height <= 0:
            raise DataError(f"a picture of {width:g} x {height:g} pixels")
        found.keys[own] = image_key(tidy(row["file_name"], "file_name")) if row.get("file_name") else own

    def category(row: Any) -> None:
        require_keys(row, "id", "name")
        names[image_id(row["id"], "id", plain=True)] = tidy(row["name"], "name")

    def thing(row: Any) -> None:
        require_keys(row, "id", "image_id", "bbox")
        own, image = (image_id(row[key], key, plain=True) for key in ("id", "image_id"))
        if image not in sizes:
            raise DataError(f"image_id {image:.60} is not among the images")
        if own in found.things:
            raise DataError(f"the id {own:.60} came before")
        x, y, width, height = numbers(row["bbox"], 4, "bbox")
        name = names.get(image_id(row["category_id"], "category_id", plain=True), "") if "category_id" in row else ""
        found.things[own] = Thing(image, relative((x, y, x + width, y + height), *sizes[image]), name)
        found.of.setdefault(image, []).append(found.things[own])

    for key, take in (("images", picture), ("categories", category)):
        if not isinstance(table.get(key), list):
            raise DataError(f"{path}: not a file of COCO annotations: it has no list '{key}'")
        read_items(table[key], path, key, take)
    read_items(annotations, path, "annotations", thing)
    return found
