"""Writes VCR's format: JSON lines whose words mention objects, and the metadata of every picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mmgen.configs import DatasetConfig
from mmgen.errors import DataError
from mmgen.reading.export import Exported, ExportedPicture, Exporter, save_json, save_json_lines, text_input
from mmgen.tensors import Example

from ..export import split_roles
from .files import LABELS, TEXTS, WHOLE_BOX, name_objects, read_text_of
from .items import CHOICES, NAMES, PERSON, Text


class Vcr(Exporter):
    """Needs examples of answers and rationales. A picture's objects are its boxes, without a last box of the whole."""

    name = "vcr"
    required_labels = ("choices", "choice_mentions")
    images = "vcr1images"

    def config(self, config: DatasetConfig, split: str) -> DatasetConfig:
        both = {"subtask": "both"} if "subtask" in type(config).model_fields else {}
        return config.model_copy(update={"test_split": split, **both})

    def write(self, exported: Exported, folder: Path) -> dict[str, Any]:
        objects: dict[str, list[str]] = {}
        for split, examples in exported.splits.items():
            items: dict[str, dict[str, Example]] = {}
            for example in examples:
                items.setdefault(str(example.facts.get("item")), {})[str(example.facts.get("asks"))] = example
            rows = []
            for item, by_subtask in items.items():
                if by_subtask.keys() != {"answer", "rationale"}:
                    raise DataError(f"item '{item}' has no answers or no rationales; the format needs examples of both")
                rows.append(_row_of_item(item, by_subtask["answer"], by_subtask["rationale"], exported, objects))
            save_json_lines(folder / f"{split}.jsonl", rows)
        for key, picture in exported.pictures.items():
            boxes = [[*picture.pixels(box), 1.0] for box in _boxes_of_objects(picture)]
            names = objects.get(key, ["thing"] * len(boxes))
            outlines = [[[[x0, y0], [x1, y0], [x1, y1], [x0, y1]]] for x0, y0, x1, y1, _ in boxes]
            size = {"width": picture.width, "height": picture.height}
            save_json(
                (folder / self.images / picture.file).with_suffix(".json"),
                {"boxes": boxes, "segms": outlines, "names": names, **size},
            )
        return {"type": "vcr", **split_roles([*exported.splits], {})}


def _boxes_of_objects(picture: ExportedPicture) -> Sequence[Sequence[float]]:
    boxes = picture.boxes
    return boxes[:-1] if boxes and tuple(boxes[-1]) == WHOLE_BOX else boxes


def _row_of_item(
    item: str, answer: Example, rationale: Example, exported: Exported, objects: dict[str, list[str]]
) -> dict[str, Any]:
    key = text_input(answer, "image")
    picture = exported.pictures[key]
    question = Text(text_input(answer, "question"), tuple(answer.shown("question_mentions")))
    texts = [question]
    for example in (answer, rationale):
        pairs = zip(example.labels["choices"], example.labels["choice_mentions"], strict=True)
        texts += [Text(text, tuple(mentions)) for text, mentions in pairs]
    known = answer.labels.get("objects", ())
    kinds = _kinds_of_objects(texts, len(_boxes_of_objects(picture)), known, item)
    objects.setdefault(key, kinds)
    names, words = name_objects(kinds), [_words_with_objects(text) for text in texts]
    for text, text_words in zip(texts, words, strict=True):
        if read_text_of(text_words, names, "text") != text:
            raise DataError(f"item '{item}': VCR's format cannot represent '{text.text:.80}' with its mentions")
    stem = Path(picture.file).stem
    row: dict[str, Any] = {"annot_id": item, "img_id": key, "img_fn": picture.file, "metadata_fn": f"{stem}.json"}
    row |= {"objects": kinds, "question": words[0]}
    row |= zip(TEXTS, (words[1 : 1 + CHOICES], words[1 + CHOICES :]), strict=True)
    for name, example in zip(LABELS, (answer, rationale), strict=True):
        if "choice" in example.labels:
            row[name] = example.labels["choice"]
    return row


def _kinds_of_objects(texts: Sequence[Text], count: int, known: Sequence[str], item: str) -> list[str]:
    """The kinds of the objects that give them the names in the texts. `known`: the kinds of objects that no text
    mentions."""
    names: dict[int, str] = {}
    for text in texts:
        for first, end, objects in text.mentions:
            for number in objects:
                if number >= count:
                    raise DataError(f"item '{item}': mentions object {number}, but the picture has {count} objects")
                names[number] = text.text[first:end]
    unseen = PERSON if names and set(names.values()) <= set(NAMES) else "thing"
    kinds = [*known[:count], *[unseen] * (count - len(known))]
    return [PERSON if names.get(number) in NAMES else names.get(number, kinds[number]) for number in range(count)]


def _words_with_objects(text: Text) -> list[Any]:
    """Words, with a list of objects where a text mentions them."""
    words: list[Any] = []
    place = 0
    for first, end, objects in text.mentions:
        words += [*text.text[place:first].split(), list(objects)]
        place = end
    return [*words, *text.text[place:].split()]
