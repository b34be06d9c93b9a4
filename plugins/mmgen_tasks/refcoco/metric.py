"""The metric of referring expressions: accuracy of boxes (RefCOCO, RefCOCO+, RefCOCOg)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmgen_vision.boxes import RIGHT, box_array, iou, most_often_right

from mmgen.examples import Example, Prediction, Scores
from mmgen.parts import Metric

from ..score_columns import Column, by_kind, means, prediction_value, scores, unknown

CHANCE = "chance: the box among these examples' boxes that is right most often"


class BoxAccuracyMetric(Metric):
    """In percent, of examples with `labels["box"]`:

    accuracy  boxes whose intersection over union with the right one is 0.5 or more; of several pictures only boxes of
              the first count, since the label's box is on the first picture
    seen, ... accuracy for every value of the facts `by`
    """

    def __init__(self, by: Sequence[str]) -> None:
        self.by = by

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0
            * bool(
                _on_first_picture(prediction)
                and iou(_predicted_box(prediction, example), example.labels["box"])[0, 0] >= RIGHT
            )
            if "box" in example.labels
            else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        columns: dict[str, Column] = {"accuracy": right}
        for fact in self.by:
            columns |= by_kind(right, examples, fact)
        return scores(columns, unknown(right, "box"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        boxes = [example.labels["box"] for example in examples if "box" in example.labels]
        return Scores(means({"accuracy": most_often_right(boxes)}, "chance_"), notes=(CHANCE,)) if boxes else None


def _on_first_picture(prediction: Prediction) -> bool:
    """Whether the box is on the first picture."""
    return not (isinstance(prediction.value, Mapping) and prediction.value.get("picture"))


def _predicted_box(prediction: Prediction, example: Example):
    return box_array([prediction_value(prediction.value, "box", example)], f"example '{example.id}': the prediction")
