"""Reads VCR's JSON lines as a data set: questions about a film's still, answers, rationales (Zellers et al., 2019)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mmgen_vision.boxes import Box, relative
from mmgen_vision.find_files import Finder
from mmgen_vision.published import read_rows

from mmgen.errors import DataError
from mmgen.examples import All, Example
from mmgen.files import image_key
from mmgen.reading.text import json_lines, kind, parse_json, read_text, require_keys, tidy

from ..dataset import CountedExamples, PublishedDataset, numbers
from .items import CHOICES, NAMES, PERSON, Item, Text

if TYPE_CHECKING:
    from .config import Vcr

TEXTS, LABELS = ("answer_choices", "rationale_choices"), ("answer_label", "rationale_label")  # keys of a line
ATTACHED = re.compile(
    r"[.,?!;:']"
)  # a word that begins so follows the word before it without a blank; its word pieces stay the same
MOST_OBJECTS = 1000
MOST_CLASSES = 10_000
CLASSES = """person bicycle car motorcycle airplane bus train truck boat trafficlight firehydrant stopsign parkingmeter
bench bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase frisbee skis
snowboard sportsball kite baseballbat baseballglove skateboard surfboard tennisracket bottle wineglass cup fork knife
spoon bowl banana apple sandwich orange broccoli carrot hotdog pizza donut cake chair couch pottedplant bed diningtable
toilet tv laptop mouse remote keyboard cellphone microwave oven toaster sink refrigerator book clock vase scissors
teddybear hairdrier toothbrush""".split()  # COCO's 80 classes in COCO's order, which are VCR's objects
WHOLE_NAME, WHOLE_BOX = "the whole picture", (0.0, 0.0, 1.0, 1.0)


class VcrFiles(PublishedDataset):
    """Examples of a `Vcr` config: choices to a question (ITEM-answer), or to a question and its answer (ITEM-rationale;
    ITEM-rationale-K given answer K, whether it is right or not).

    inputs   "image": its key; "question"; "question_mentions": `All` of (first character, end, objects), where the
             question mentions objects
    labels   "choices": four texts; "choice_mentions": their mentions; "choice": which choice is right, from 0, where
             that is known and the given answer is right; "objects": the class of every object
    facts    asks: "answer" or "rationale"; item and group: the line's `annot_id`; image

    People get arbitrary names; other objects are named by their class. A picture's boxes are those of its objects in
    their order and, last, the whole picture.
    """

    name = "VCR"
    licence = "the terms of visualcommonsense.com"
    source = "visualcommonsense.com/download"
    advice = "put the files there, or name other files in data.files"
    config: Vcr

    def find(self, finder: Finder, split: str) -> Path:
        if split in self.config.files:
            return finder.file([self.config.files[split]], "")
        return finder.file([f"{split}.jsonl"], f"{self.source}, vcr1annots.zip")

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder, ("vcr1annots",))

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """The classes of objects: COCO's 80, and the other classes of the training split."""
        class_names = {name for example in self.split(self.config.train_split) for name in example.labels["objects"]}
        if len(other_classes := sorted(class_names.difference(CLASSES))) > MOST_CLASSES:
            raise DataError(
                f"{self.main_file(self.config.train_split)}: {len(other_classes):,} classes of objects are not COCO's; "
                f"at most {MOST_CLASSES:,} are supported"
            )
        return {"objects": (*CLASSES, *other_classes)}

    def read(self, split: str) -> CountedExamples:
        examples: list[Example] = []
        seen: set[str] = set()
        counts: Counter[str] = Counter()

        def take(row: Any) -> None:
            item = read_item(row)
            if item.id in seen:
                raise DataError(f"duplicate annot_id '{item.id:.60}'")
            seen.add(item.id)
            if self.config.subtask == "rationale" and item.answer is None:
                counts["without_answers"] += 1
            examples.extend(self._examples(item))

        read_rows(json_lines(self.files[split]), self.files[split], take)
        return CountedExamples(examples, counts)

    def _examples(self, item: Item) -> Iterator[Example]:
        return item.examples(self.config.subtask)

    def boxes(self, key: str) -> tuple[list[Box], list[str]]:
        path = self.pictures_at[key].with_suffix(".json")
        table = parse_json(read_text(path), path)
        try:
            boxes, names = read_boxes(table)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        return [*boxes, WHOLE_BOX], [*names, WHOLE_NAME]


class VcrTextFiles(VcrFiles):
    """Examples of a `VcrTexts` config: for each example of a `Vcr` config one per choice (ITEM-answer-K,
    ITEM-rationale-K), K from 0.

    inputs   "image", "question", "question_mentions" as in `VcrFiles`; "choice"; "choice_mentions" where it has any
    labels   "truth": whether the choice is right, where that is known
    facts    as in `VcrFiles`
    """

    name = "VCR's texts"

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        """No vocabularies: examples have no objects."""
        return {}

    def _examples(self, item: Item) -> Iterator[Example]:
        for example in super()._examples(item):
            choices = zip(example.labels["choices"], example.labels["choice_mentions"], strict=True)
            for place, (choice, mentions) in enumerate(choices):
                inputs = {**example.inputs, "choice": choice}
                if mentions:
                    inputs["choice_mentions"] = All(mentions)
                known = example.labels.get("choice")
                labels = {} if known is None else {"truth": place == known}
                yield replace(example, id=f"{example.id}-{place}", inputs=inputs, labels=labels)


def read_item(row: Any) -> Item:
    """The item of a line. Raises DataError."""
    require_keys(row, "annot_id", "img_fn", "objects", "question", *TEXTS)
    item_id = tidy(row["annot_id"], "annot_id")
    if not item_id:
        raise DataError("annot_id is empty")
    image = PurePosixPath(tidy(row["img_fn"], "img_fn")).name
    if not image:
        raise DataError("img_fn is empty")
    object_names = name_objects(row["objects"])
    choices = []
    for key in TEXTS:
        if not isinstance(row[key], list) or len(row[key]) != CHOICES:
            raise DataError(f"{key} must be a list of {CHOICES} lists of words")
        choices.append(
            tuple(read_text_of(words, object_names, f"{key}[{place}]") for place, words in enumerate(row[key]))
        )
    answers, rationales = choices
    answer, rationale = (_read_label(row, key) for key in LABELS)
    objects = tuple(tidy(name, "objects") for name in row["objects"])
    question = read_text_of(row["question"], object_names, "question")
    return Item(item_id, image_key(image), objects, question, answers, rationales, answer, rationale)


def name_objects(objects: Any) -> list[str]:
    """The names of a still's objects in texts. Raises DataError."""
    if not isinstance(objects, list) or len(objects) > MOST_OBJECTS:
        raise DataError(f"objects must be a list of at most {MOST_OBJECTS:,} strings")
    people, object_names = 0, []
    for place, object_ in enumerate(objects):
        name = tidy(object_, f"objects[{place}]")
        if not name:
            raise DataError(f"objects[{place}] is empty")
        if name == PERSON:
            name, people = NAMES[people % len(NAMES)], people + 1
        object_names.append(name)
    return object_names


def read_text_of(words: Any, object_names: list[str], name: str) -> Text:
    """Words joined; a list of numbers among them mentions the objects of these numbers. Raises DataError."""
    if not isinstance(words, list):
        raise DataError(f"{name} must be a list of words, not {kind(words)}")
    text, mentions = "", []
    for place, word in enumerate(words):
        if isinstance(word, list):
            for number, position in enumerate(word):
                if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < len(object_names):
                    raise DataError(
                        f"{name}[{place}] mentions an object that is not among the {len(object_names)} objects"
                    )
                text += " and " if number else " " if text else ""
                mentions.append((len(text), len(text) + len(object_names[position]), (position,)))
                text += object_names[position]
        elif text_piece := tidy(word, f"{name}[{place}]"):
            text += text_piece if not text or ATTACHED.match(text_piece) else f" {text_piece}"
    if not text:
        raise DataError(f"{name} has no words")
    return Text(text, tuple(mentions))


def _read_label(row: dict[str, Any], name: str) -> int | None:
    label = row.get(name)
    if label is None:
        return None
    if isinstance(label, bool) or not isinstance(label, int) or not 0 <= label < CHOICES:
        raise DataError(f"{name} must be a number from 0 to {CHOICES - 1}")
    return label


def read_boxes(table: Any) -> tuple[list[Box], list[str]]:
    """Boxes and names of a still's objects, from its metadata. Raises DataError."""
    require_keys(table, "boxes", "names", "width", "height")
    width, height = numbers([table["width"], table["height"]], 2, "width and height")
    boxes, names = table["boxes"], table["names"]
    if width <= 0 or height <= 0:
        raise DataError(f"the picture's size is {width:g} x {height:g} pixels; width and height must be positive")
    if not isinstance(boxes, list) or not isinstance(names, list) or len(boxes) != len(names):
        raise DataError("boxes and names must be lists of the same length")
    relative_boxes = []
    for place, box in enumerate(boxes):
        if not isinstance(box, list) or len(box) not in (4, 5):
            raise DataError(f"boxes[{place}] must be [x0, y0, x1, y1, score]")
        relative_box = relative(numbers(box[:4], 4, f"boxes[{place}]"), width, height)
        if relative_box is None:
            raise DataError(f"boxes[{place}] is outside of the picture, or empty")
        relative_boxes.append(relative_box)
    return relative_boxes, [tidy(name, f"names[{place}]") for place, name in enumerate(names)]
