"""The metric of Flickr30K Entities: recall of the boxes of phrases, from the rank of the first right box."""

from __future__ import annotations

from collections.abc import Sequence

from mmgen_vision.boxes import RIGHT, box_array, iou, most_often_right

from mmgen.errors import DataError
from mmgen.examples import Example, Prediction, Scores
from mmgen.parts import Metric

from ..refcoco.metric import CHANCE
from ..score_columns import Column, by_kind, means, scores, unknown

RANKS = (1, 5, 10)


class PhraseRecallMetric(Metric):
    """In percent, of examples with one phrase in `labels["phrases"]`, (first character, end, box); a box is right whose
    intersection over union with the phrase's box is 0.5 or more:

    R@1, R@5, R@10  phrases that have a right box among the likeliest 1, 5 and 10
    upper bound     phrases that have a right box among all predicted boxes
    people, ...     R@1 by the phrase's type, `facts["type"]`, where the config says so
    """

    def __init__(self, types: bool) -> None:
        self.types = types

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        ranks = [
            _rank_of_right_box(prediction, example) for prediction, example in zip(generations, examples, strict=True)
        ]

        def within(most: float) -> Column:
            return [None if rank is None else 100.0 * (rank < most) for rank in ranks]

        columns = {**{f"R@{most}": within(most) for most in RANKS}, "upper bound": within(float("inf"))}
        if self.types:
            columns = {**by_kind(columns["R@1"], examples, "type"), **columns}
        return scores(columns, unknown(ranks, "phrase with a box"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        boxes = [box for example in examples if (box := _right_boxes(example)) is not None]
        return Scores(means({"R@1": most_often_right(boxes)}, "chance_"), notes=(CHANCE,)) if boxes else None


def _rank_of_right_box(prediction: Prediction, example: Example) -> float | None:
    """How many boxes come before the first right box; infinite without one; None for an example without a phrase."""
    box = _right_boxes(example)
    if box is None:
        return None
    if not isinstance(prediction.value, list | tuple):
        raise DataError(f"example '{example.id}': the prediction must be a list of boxes, not {prediction.value!r:.60}")
    hits = (iou(box_array(prediction.value, f"example '{example.id}': the prediction"), box)[:, 0] >= RIGHT).nonzero()[
        0
    ]
    return float(hits[0]) if len(hits) else float("inf")


def _right_boxes(example: Example) -> Sequence[float] | None:
    phrases = example.labels.get("phrases", ())
    if len(phrases) > 1:
        raise DataError(f"example '{example.id}': has {len(phrases)} phrases; a scored example must have one phrase")
    return phrases[0][2] if phrases else None
