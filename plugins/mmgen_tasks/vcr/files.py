"""VCR's JSON lines: a question about people and things of a film's still, four answers, four rationales (Zellers et
al., 2019)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from mmgen_vl.boxes import Box, relative
from mmgen_vl.published import read_rows

from mmgen.errors import DataError
from mmgen.files import image_key
from mmgen.reading.finding import Finder
from mmgen.reading.text import json_lines, kind, parse_json, read_text, require_keys, tidy
from mmgen.tensors import All, Example

from ..dataset import PublishedDataset, Read, numbers
from .items import CHOICES, NAMES, PERSON, Item, Text

if TYPE_CHECKING:
    from .config import Vcr

TEXTS, LABELS = ("answer_choices", "rationale_choices"), ("answer_label", "rationale_label")  # keys of a line
ATTACHED = re.compile(r"[.,?!;:']")  # what begins so stands at the word before it, and parts into the same word pieces
MOST_OBJECTS = 1000
MOST_CLASSES = 10_000
CLASSES = """person bicycle car motorcycle airplane bus train truck boat trafficlight firehydrant stopsign parkingmeter
bench bird cat dog horse sheep cow elephant bear zebra giraffe backpack umbrella handbag tie suitcase frisbee skis
snowboard sportsball kite baseballbat baseballglove skateboard surfboard tennisracket bottle wineglass cup fork knife
spoon bowl banana apple sandwich orange broccoli carrot hotdog pizza donut cake chair couch pottedplant bed diningtable
toilet tv laptop mouse remote keyboard cellphone microwave oven toaster sink refrigerator book clock vase scissors
teddybear hairdrier toothbrush""".split()  # COCO's 80, in its order; VCR's objects are these
WHOLE, WHOLE_BOX = "the whole picture", (0.0, 0.0, 1.0, 1.0)


class VcrFiles(PublishedDataset):
    """Examples of a `Vcr` config: choices to a question (ITEM-answer), or to a question and its answer (ITEM-rationale;
    ITEM-rationale-K where answer K is given, whether it is right or not).

    inputs   "image": its key; "question"; "question_mentions": `All` of (first character, end, objects), where the
             question mentions any
    labels   "choices": four texts; "choice_mentions": the mentions of each; "choice": which one is right, from 0, where
             that is known and the answer that is given is the right one; "objects": what each object is
    facts    asks: "answer" or "rationale"; item and group: the line's `annot_id`; image

    People are called by names that any of them may have; other objects by what they are. A picture's boxes are those of
    its objects in their order and, last, the whole picture.
    """

    name = "VCR"
    licence = "the terms of visualcommonsense.com"
    source = "visualcommonsense.com/download"
    advice = "put them there, or name others in data.files"
    config: Vcr

    def find(self, finder: Finder, split: str) -> Path:
        if split in self.config.files:
            return finder.file([self.config.files[split]], "")
        return finder.file([f"{split}.jsonl"], f"{self.source}, vcr1annots.zip")

    def finder(self) -> Finder:
        return Finder(self.name, self.config.folder, ("vcr1annots",))

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """What objects there are: COCO's 80 classes, and what else the split to learn from has."""
        here = {name for example in self.split(self.config.train_split) for name in example.labels["objects"]}
        if len(others := sorted(here.difference(CLASSES))) > MOST_CLASSES:
            raise DataError(
                f"{self.named(self.config.train_split)}: its objects are of {len(others):,} kinds that are none of "
                f"COCO's 80; at most {MOST_CLASSES:,} can be told apart"
            )
        return {"objects": (*CLASSES, *others)}

    def read(self, split: str) -> Read:
        found: list[Example] = []
        seen: set[str] = set()
        counts: Counter[str] = Counter()

        def take(row: Any) -> None:
            item = read_item(row)
            if item.id in seen:
                raise DataError(f"annot_id '{item.id:.60}' came before")
            seen.add(item.id)
            if self.config.subtask == "rationale" and item.answer is None:
                counts["without_answers"] += 1
            found.extend(self._examples(item))

        read_rows(json_lines(self.files[split]), self.files[split], take)
        return Read(found, counts)

    def _examples(self, item: Item) -> Iterator[Example]:
        return item.examples(self.config.subtask)

    def boxes(self, key: str) -> tuple[list[Box], list[str]]:
        path = self.pictures_at[key].with_suffix(".json")
        table = parse_json(read_text(path), path)
        try:
            boxes, names = read_boxes(table)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        return [*boxes, WHOLE_BOX], [*names, WHOLE]


class VcrTextFiles(VcrFiles):
    """Examples of a `VcrTexts` config: of each example of a `Vcr` config as many as it has choices (ITEM-answer-K,
    ITEM-rationale-K), K from 0.

    inputs   "image", "question", "question_mentions" as there; "choice"; "choice_mentions", where it mentions any
    labels   "truth": whether it is the right one, where that is known
    facts    as there
    """

    name = "VCR's texts"

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        """Nothing to choose from: the objects are `Vcr`'s."""
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
    """A line's item. Raises DataError."""
    require_keys(row, "annot_id", "img_fn", "objects", "question", *TEXTS)
    own = tidy(row["annot_id"], "annot_id")
    if not own:
        raise DataError("annot_id is empty")
    image = PurePosixPath(tidy(row["img_fn"], "img_fn")).name
    if not image:
        raise DataError("img_fn is empty")
    called = names(row["objects"])
    choices = []
    for key in TEXTS:
        if not isinstance(row[key], list) or len(row[key]) != CHOICES:
            raise DataError(f"{key} must be a list of {CHOICES} lists of words")
        choices.append(tuple(read_text_of(words, called, f"{key}[{place}]") for place, words in enumerate(row[key])))
    answers, rationales = choices
    answer, rationale = (_label(row, key) for key in LABELS)
    objects = tuple(tidy(each, "objects") for each in row["objects"])
    question = read_text_of(row["question"], called, "question")
    return Item(own, image_key(image), objects, question, answers, rationales, answer, rationale)


def names(objects: Any) -> list[str]:
    """What the objects of a still are called in texts."""
    if not isinstance(objects, list) or len(objects) > MOST_OBJECTS:
        raise DataError(f"objects must be a list of at most {MOST_OBJECTS:,} texts")
    people, found = 0, []
    for place, object_ in enumerate(objects):
        name = tidy(object_, f"objects[{place}]")
        if not name:
            raise DataError(f"objects[{place}] is empty")
        if name == PERSON:
            name, people = NAMES[people % len(NAMES)], people + 1
        found.append(name)
    return found


def read_text_of(words: Any, called: list[str], name: str) -> Text:
    """Words joined; a list of numbers among them mentions these objects, which are `called` so. Raises DataError."""
    if not isinstance(words, list):
        raise DataError(f"{name} must be a list of words, not {kind(words)}")
    text, mentions = "", []
    for place, word in enumerate(words):
        if isinstance(word, list):
            for number, own in enumerate(word):
                if isinstance(own, bool) or not isinstance(own, int) or not 0 <= own < len(called):
                    raise DataError(f"{name}[{place}] mentions an object that is not among the {len(called)} objects")
                text += " and " if number else " " if text else ""
                mentions.append((len(text), len(text) + len(called[own]), (own,)))
                text += called[own]
        elif told := tidy(word, f"{name}[{place}]"):
            text += told if not text or ATTACHED.match(told) else f" {told}"
    if not text:
        raise DataError(f"{name} has no words")
    return Text(text, tuple(mentions))


def _label(row: dict[str, Any], name: str) -> int | None:
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
    boxes, called = table["boxes"], table["names"]
    if width <= 0 or height <= 0:
        raise DataError(f"a picture of {width:g} x {height:g} pixels")
    if not isinstance(boxes, list) or not isinstance(called, list) or len(boxes) != len(called):
        raise DataError("boxes and names must be lists of one length")
    found = []
    for place, box in enumerate(boxes):
        if not isinstance(box, list) or len(box) not in (4, 5):
            raise DataError(f"boxes[{place}] must be x0, y0, x1, y1 and its score")
        cut = relative(numbers(box[:4], 4, f"boxes[{place}]"), width, height)
        if cut is None:
            raise DataError(f"boxes[{place}] lies outside of the picture, or is empty")
        found.append(cut)
    return found, [tidy(name, f"names[{place}]") for place, name in enumerate(called)]
