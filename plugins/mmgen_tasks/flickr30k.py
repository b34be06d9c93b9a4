"""Flickr30K Entities (Plummer et al., 2015): which box of a picture each phrase of its caption refers to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from mmgen_vision.boxes import RIGHT, Box, box_array, iou, most_often_right
from mmgen_vision.configs import About, Published, ScoringConfig
from mmgen_vision.flickr30k_files import ANNOTATIONS, SENTENCES, SOURCE, Phrase, read_annotation, read_sentences
from pydantic import Field

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.files import image_key
from mmgen.reading.text import read_text

from .columns import Column, by_kind, means, scores, unknown
from .refcoco import CHANCE

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData


class Flickr30kEntities(Published):
    """Flickr30K Entities: which box of a picture does each phrase of its caption refer to?

    `folder` has Sentences and Annotations, from annotations.zip, and the splits' lists of images.
    """

    type: Literal["flickr30k_entities"] = "flickr30k_entities"
    about = About(
        "Flickr30K Entities",
        "not stated; images: for non-commercial research and education, their photographers' terms",
        SOURCE,
    )
    labels: ClassVar[tuple[str, ...]] = ("phrases",)

    def find(self, finder: Finder, split: str) -> Files:
        names = self.named_files(split) or (Path(f"{split}.txt"),)
        where = f"unpack annotations.zip of {SOURCE} in data.folder"
        return {
            "names": [finder.file(name, where=f"{SOURCE}, {split}.txt") for name in names],
            "folders": [finder.subfolder(SENTENCES, where), finder.subfolder(ANNOTATIONS, where)],
        }

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """One example per phrase in the split to evaluate, else one per caption.

        id       image, number of the caption and, in the split to evaluate, of the phrase: "1000092795-0-2"
        inputs   "image": its key; "caption"
        labels   "phrases": ((first character, end, box), ...), the box around all things that the phrase names,
                 relative to the picture's size; phrases without a box are left out
        facts    image; types: one per phrase (people, clothing, ...); in the split to evaluate type
        """
        sentences, annotations = data.files[split]["folders"]
        for path in data.files[split]["names"]:
            for number, name in read_names(path):
                files = sentences / f"{name}.txt", annotations / f"{name}.xml"
                if absent := [file for file in files if not file.is_file()]:
                    raise DataError(f"{path}:{number}: no file {absent[0]}; unpack annotations.zip of {SOURCE}")
                boxes = read_annotation(files[1]).around()
                for place, (caption, phrases) in enumerate(read_sentences(files[0])):
                    yield from self._examples(split, f"{name}-{place}", image_key(name), caption, phrases, boxes)

    def _examples(
        self, split: str, name: str, key: str, caption: str, phrases: Sequence[Phrase], boxes: dict[str, Box | None]
    ) -> Iterator[Example | str]:
        inputs, boxed = {"image": key, "caption": caption}, []
        for place, phrase in enumerate(phrases):
            if (box := boxes.get(phrase.chain)) is None:
                yield "phrase{s} without a box"
            else:
                boxed.append((place, (phrase.first, phrase.end, box), phrase.types[0]))
        if not boxed:
            yield "caption{s} without a phrase that has one"
        elif split == self.test_split:
            for place, labelled, kind in boxed:
                facts = {"image": key, "type": kind, "types": [kind]}
                yield Example(f"{name}-{place}", inputs, (), facts, {"phrases": (labelled,)})
        else:
            facts = {"image": key, "types": [kind for _, _, kind in boxed]}
            yield Example(name, inputs, (), facts, {"phrases": tuple(labelled for _, labelled, _ in boxed)})


def read_names(path: Path) -> list[tuple[int, str]]:
    """The image names of a split with their lines. Raises DataError."""
    names: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if name := line.strip():
            if not name.replace("-", "").replace("_", "").isalnum() or len(name) > 200:
                raise DataError(f"{path}:{number}: '{name:.60}' is not an image name; use letters, digits, - and _")
            if name in names:
                raise DataError(f"{path}:{number}: duplicate image {name}, first on line {names[name]}")
            names[name] = number
    return [(number, name) for name, number in names.items()]


class PhraseRecall(ScoringConfig):
    """Recall of phrases' boxes at 1, 5 and 10, and the upper bound, in percent (Plummer et al., 2015).

    Of examples with one phrase: those that have a right box among the likeliest 1, 5, 10 or all. A box is right whose
    intersection over union with the phrase's box is 0.5 or more.
    """

    type: Literal["phrase_recall"] = "phrase_recall"
    judges = frozenset({"boxes"})
    required_labels = ("phrases",)

    by_phrase_type: bool = Field(False, description="add a column of R@1 for each type of phrase")

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        ranks = [_rank(prediction, example) for prediction, example in zip(generations, examples, strict=True)]

        def within(most: float) -> Column:
            return [None if rank is None else 100.0 * (rank < most) for rank in ranks]

        columns = {**{f"R@{most}": within(most) for most in (1, 5, 10)}, "upper bound": within(float("inf"))}
        if self.by_phrase_type:
            columns = {**by_kind(columns["R@1"], examples, "type"), **columns}
        return scores(columns, unknown(ranks, "phrase with a box"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        boxes = [box for example in examples if (box := _box(example)) is not None]
        return Scores(means({"R@1": most_often_right(boxes)}, "chance_"), notes=(CHANCE,)) if boxes else None


def _rank(prediction: Prediction, example: Example) -> float | None:
    """How many boxes come before the first right box; infinite without one; None for an example without a phrase."""
    if (box := _box(example)) is None:
        return None
    if not isinstance(prediction.value, list | tuple):
        raise DataError(f"example '{example.id}': the prediction must be a list of boxes, not {prediction.value!r:.60}")
    predicted = box_array(prediction.value, f"example '{example.id}': the prediction")
    (hits,) = (iou(predicted, box)[:, 0] >= RIGHT).nonzero()
    return float(hits[0]) if len(hits) else float("inf")


def _box(example: Example) -> Sequence[float] | None:
    """The box of an example's phrase."""
    phrases = example.labels.get("phrases", ())
    if len(phrases) > 1:
        raise DataError(f"example '{example.id}': has {len(phrases)} phrases; a scored example must have one phrase")
    return phrases[0][2] if phrases else None
