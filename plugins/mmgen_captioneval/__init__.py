"""Caption metrics: BLEU, ROUGE-L, METEOR and CIDEr as in the COCO caption evaluation; and how much texts differ."""

from typing import Literal

from pydantic import Field

import mmgen


class CaptionScores(mmgen.MetricConfig):
    """BLEU-1 to 4, ROUGE-L, METEOR 1.5 and CIDEr-D, times 100, by pycocoevalcap; one text against all its targets."""

    type: Literal["captioneval"] = "captioneval"
    tokenizer: Literal["auto", "java", "own"] = Field(
        "auto", description="Stanford's, which needs Java; our own, which does not; or Stanford's where there is Java"
    )
    meteor: bool = Field(True, description="METEOR too; it needs Java, up to 2 GB of memory, and some seconds to start")
    patience: float = Field(120.0, gt=0, description="seconds without an answer after which Java is given up")

    def build(self):
        from .metric import CaptionMetric

        return CaptionMetric(self)


class Diversity(mmgen.MetricConfig):
    """How much texts differ from each other, in percent: distinct-1 and -2, share of unique texts, self-BLEU."""

    type: Literal["diversity"] = "diversity"

    def build(self):
        from .diversity import DiversityMetric

        return DiversityMetric()


@mmgen.hookimpl
def register_metrics():
    return [CaptionScores, Diversity]
