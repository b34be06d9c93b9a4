"""Flickr30K Entities (Plummer et al., 2015): which box of a picture each phrase of its caption refers to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from mmgen_vision.boxes import RIGHT, Box, box_array, iou, most_often_right
from mmgen_vision.configs import About, Published
from mmgen_vision.flickr30k_files import ANNOTATIONS, SENTENCES, SOURCE, Phrase, read_annotation, read_sentences

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.files import image_key
from mmgen.reading.text import read_text

from .columns import ByFacts, Column, means, scores, unknown
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
        where = f"unpack annotations.zip of {SOURCE} in data.folder"
        folders = [finder.subfolder(name, where) for name in (SENTENCES, ANNOTATIONS)]
        return {"names": finder.files(split, f"{split}.txt"), "folders": folders}

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
            for name in read_names(path):
                boxes = read_annotation(annotations / f"{name}.xml").around()
                for place, (caption, phrases) in enumerate(read_sentences(sentences / f"{name}.txt")):
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
        scored = split == self.test_split
        for group in [[item] for item in boxed] if scored else [boxed] * bool(boxed):
            kinds = [kind for _, _, kind in group]
            facts = {"image": key, "types": kinds} | ({"type": kinds[0]} if scored else {})
            labels = {"phrases": tuple(labelled for _, labelled, _ in group)}
            yield Example(f"{name}-{group[0][0]}" if scored else name, inputs, (), facts, labels)


def read_names(path: Path) -> Iterator[str]:
    """The image names of a split. Raises DataError."""
    names = set[str]()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if (name := line.strip()) and name not in names:
            if not re.fullmatch(r"[\w-]{1,200}", name):
                raise DataError(f"{path}:{number}: '{name:.60}' is not an image name; use letters, digits, - and _")
            names.add(name)
            yield name


class PhraseRecall(ByFacts):
    """Recall of phrases' boxes at 1, 5 and 10, and the upper bound, in percent (Plummer et al., 2015).

    Of examples with one phrase: those that have a right box among the likeliest 1, 5, 10 or all. A box is right whose
    intersection over union with the phrase's box is 0.5 or more. Columns of the facts `by`, such as "type", are R@1.
    """

    type: Literal["phrase_recall"] = "phrase_recall"
    judges = frozenset({"boxes"})
    required_labels = ("phrases",)

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        ranks = [_rank(prediction, example) for prediction, example in zip(generations, examples, strict=True)]

        def within(most: float) -> Column:
            return [None if rank is None else 100.0 * (rank < most) for rank in ranks]

        columns = {**{f"R@{most}": within(most) for most in (1, 5, 10)}, "upper bound": within(float("inf"))}
        columns |= self.by_facts({"": columns["R@1"]}, examples)
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
