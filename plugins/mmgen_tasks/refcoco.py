"""RefCOCO, RefCOCO+, RefCOCOg (Yu et al., 2016): which box of a picture an expression refers to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from mmgen_vision.boxes import RIGHT, Box, box_array, iou, most_often_right, relative
from mmgen_vision.configs import About, Published
from mmgen_vision.lines import read_value
from pydantic import Field

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.reading.rows import Id, Key, Line, Row, raw_rows, validated

from .columns import Accuracy, means, prediction_value

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData

SERVER = "https://bvisionweb1.cs.unc.edu/licheng/referit/data"
LICENCE = "expressions: not stated; boxes: CC BY 4.0; images: their photographers' terms"
CHANCE = "chance: the box among these examples' boxes that is right most often"

Side = Annotated[float, Field(gt=0, lt=1e9)]
Number = Annotated[float, Field(gt=-1e9, lt=1e9)]


class Sentence(Row):
    """An expression."""

    sent_id: Id
    sent: Line


class Ref(Row):
    """A row of `refs(...).p`: a thing and its expressions."""

    split: Line
    ann_id: Id
    sentences: list[Sentence]
    ref_id: Id | None = None


class ImageRow(Row):
    """A row of `images` in `instances.json`."""

    id: Id
    width: Side
    height: Side
    file_name: Key | None = None


class CategoryRow(Row):
    """A row of `categories`."""

    id: Id
    name: Line


class AnnotationRow(Row):
    """A row of `annotations`."""

    id: Id
    image_id: Id
    bbox: list[Number] = Field(min_length=4, max_length=4)
    category_id: Id | None = None


class Thing(NamedTuple):
    """An annotated thing of a picture: the picture's key, the box (None outside of the picture), and what it is."""

    key: str
    box: Box | None
    name: str


class Refcoco(Published):
    """Referring expressions about objects of COCO's pictures (RefCOCO, RefCOCO+, RefCOCOg): an expression, a box.

    `refs(...).p` is a pickle. It is read without running code, and may also be JSON of the same content.
    """

    type: Literal["refcoco"] = "refcoco"
    labels: ClassVar[tuple[str, ...]] = ("box",)

    test_split: str = Field("val", description="the split that every step predicts and is scored on")
    release: Literal["refcoco", "refcoco+", "refcocog"] = Field(
        "refcoco+", description="the release; its files are in `folder`, or in the subfolder of this name"
    )

    @property
    def about(self):  # type: ignore[override]
        return About(self.release.replace("refcoco", "RefCOCO"), LICENCE, "github.com/lichengunc/refer")

    @property
    def below(self):  # type: ignore[override]
        return (self.release,)

    def names(self) -> tuple[str, ...]:
        return ("train", "val", *(("test",) if self.release == "refcocog" else ("testA", "testB")))

    def find(self, finder: Finder, split: str) -> Files:
        where = f"web.archive.org/web/2022/{SERVER}/{self.release}.zip (the original server is down)"
        authors = "umd" if self.release == "refcocog" else "unc"
        refs = [f"refs({authors}).{ending}" for ending in ("p", "json")]
        return {"refs": [finder.file(*refs, where=where)], "instances": [finder.file("instances.json", where=where)]}

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """Examples by the expression's `sent_id`: inputs "image" and "expression"; label "box"; facts image, category
        (the name of the thing's category) and ref (its `ref_id`). A picture's boxes are those of all its things."""
        things = self._things(data)
        for place, row in data.once("refs", lambda: read_refs(data.main_file(self.train_split))):
            if row.split != split:
                continue
            thing = things.get(row.ann_id)
            if thing is None:
                raise DataError(
                    f"{place}: ann_id {row.ann_id:.60} is not in the annotations of instances.json; use two files of "
                    "the same release"
                )
            facts = {"image": thing.key, "category": thing.name} | ({"ref": row.ref_id} if row.ref_id else {})
            for sentence in row.sentences:
                if not sentence.sent or thing.box is None:
                    yield "expression{s} without a box" if sentence.sent else "expression{s} without a text"
                else:
                    inputs = {"image": thing.key, "expression": sentence.sent}
                    yield Example(sentence.sent_id, inputs, (), facts, {"box": thing.box})

    def _things(self, data: PublishedData) -> Mapping[str, Thing]:
        """The things of `instances.json`, by their ids."""
        return data.once("things", lambda: read_instances(data.files[self.train_split]["instances"][0]))

    def boxes(self, data: PublishedData, key: str) -> tuple[list[Box], list[str]] | None:
        things = [
            (thing.box, thing.name) for thing in data.once("by key", lambda: self._by_key(data))[key] if thing.box
        ]
        return ([box for box, _ in things], [name for _, name in things]) if things else None

    def _by_key(self, data: PublishedData) -> Mapping[str, list[Thing]]:
        things = defaultdict[str, list[Thing]](list)
        for thing in self._things(data).values():
            things[thing.key].append(thing)
        return things


def read_refs(path: Path) -> list[tuple[str, Ref]]:
    """The rows of a file of expressions, with their places. Raises DataError."""
    if not isinstance(refs := read_value(path), list):
        raise DataError(f"{path}: a file of expressions must be a list")
    return [*validated(((f"{path}: refs[{number}]", ref) for number, ref in enumerate(refs)), Ref)]


def read_instances(path: Path) -> dict[str, Thing]:
    """Things in COCO's format, by their ids. Raises DataError."""
    pictures = {row.id: row for _, row in validated(raw_rows(path, "images"), ImageRow)}
    names = {row.id: row.name for _, row in validated(raw_rows(path, "categories"), CategoryRow)}
    things = {}
    for place, row in validated(raw_rows(path, "annotations"), AnnotationRow, unique="id"):
        if (picture := pictures.get(row.image_id)) is None:
            raise DataError(f"{place}: image_id {row.image_id:.60} is not among the images")
        x, y, width, height = row.bbox
        box = relative((x, y, x + width, y + height), picture.width, picture.height)
        things[row.id] = Thing(picture.file_name or picture.id, box, names.get(row.category_id or "", ""))
    return things


class BoxAccuracy(Accuracy):
    """Referring expressions whose predicted box is right, in percent: an intersection over union of 0.5 or more. Of
    several pictures only boxes of the first count, since the label's box is on the first picture."""

    type: Literal["box_accuracy"] = "box_accuracy"
    judges = frozenset({"region"})
    required_labels = ("box",)

    def is_right(self, prediction: Prediction, example: Example) -> bool:
        if isinstance(prediction.value, Mapping) and prediction.value.get("picture"):
            return False
        box: Any = prediction_value(prediction.value, "box", example.id)
        predicted = box_array([box], f"example '{example.id}': the prediction")
        return bool(iou(predicted, example.labels["box"])[0, 0] >= RIGHT)

    def references(self, examples: Sequence[Example]) -> Scores | None:
        boxes = [example.labels["box"] for example in examples if "box" in example.labels]
        return Scores(means({"accuracy": most_often_right(boxes)}, "chance_"), notes=(CHANCE,)) if boxes else None
