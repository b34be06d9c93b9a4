from typing import Literal

from mmgen import MetricConfig
from mmgen.examples import Scores
from mmgen.parts import Metric


class Words(MetricConfig):
    """The number of a text's words."""

    type: Literal["words"] = "words"

    def build(self):
        return Count()


class Count(Metric):
    def score(self, texts, examples):
        counts = [len(text.text.split()) for text in texts]
        return Scores({"words": sum(counts) / len(counts)}, {"words": counts})
