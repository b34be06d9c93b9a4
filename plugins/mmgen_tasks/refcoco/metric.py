"""Accuracy of boxes that referring expressions are about (RefCOCO, RefCOCO+, RefCOCOg)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mmgen_vl.boxes import RIGHT, box_array, iou, most_often_right

from mmgen.parts import Metric
from mmgen.tensors import Example, Prediction, Scores

from ..columns import means, scores, told, unknown

CHANCE = "chance: the box, of these examples' own, that is right most often"


class BoxAccuracyMetric(Metric):
    """In percent, of examples with `labels["box"]`:

    accuracy  boxes whose intersection over union with the right one is 0.5 or more; of several pictures those of the
              first, which the label's box is of
    """

    def score(self, generations: Sequence[Prediction], examples: Sequence[Example]) -> Scores:
        right = [
            100.0 * bool(_of_first(one) and iou(_box(one, example), example.labels["box"])[0, 0] >= RIGHT)
            if "box" in example.labels
            else None
            for one, example in zip(generations, examples, strict=True)
        ]
        return scores({"accuracy": right}, unknown(right, "box"))

    def references(self, examples: Sequence[Example]) -> Scores | None:
        boxes = [example.labels["box"] for example in examples if "box" in example.labels]
        return Scores(means({"accuracy": most_often_right(boxes)}, "chance_"), notes=(CHANCE,)) if boxes else None


def _of_first(one: Prediction) -> bool:
    """Whether the box is one of the first picture."""
    return not (isinstance(one.value, Mapping) and one.value.get("picture"))


def _box(one: Prediction, example: Example):
    return box_array([told(one.value, "box", example)], f"example '{example.id}': the prediction")
