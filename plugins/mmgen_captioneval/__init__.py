"""Configs of caption metrics: BLEU, ROUGE-L, METEOR, CIDEr as in COCO's evaluation; and diversity of texts."""

from typing import Literal

from pydantic import Field

import mmgen


class CaptionScores(mmgen.MetricConfig):
    """BLEU-1 to 4, ROUGE-L, METEOR 1.5 and CIDEr-D, times 100, by pycocoevalcap; one text against all its targets."""

    type: Literal["captioneval"] = "captioneval"
    tokenizer: Literal["auto", "java", "own"] = Field(
        "auto", description='"java": Stanford\'s; "own": ours, without Java; "auto": Stanford\'s if Java is installed'
    )
    meteor: bool = Field(
        True, description="also METEOR, which needs Java, up to 2 GB of memory and some seconds to start"
    )
    timeout: float = Field(120.0, gt=0, description="seconds to wait for an answer from Java")

    def of_sums(self, name, sums):
        from .meteor import meteor
        from .metric import bleu

        return {"METEOR": 100 * meteor(sums)} if name == "METEOR" else bleu(sums)

    def build(self):
        from .metric import CaptionMetric

        return CaptionMetric(self)


class Diversity(mmgen.MetricConfig):
    """Diversity of texts in percent: distinct-1 and -2, share of unique texts, self-BLEU."""

    type: Literal["diversity"] = "diversity"
    lower_is_better = frozenset({"self-BLEU"})
    of_all_texts = frozenset({"self-BLEU"})
    judges_fit = False

    def build(self):
        from .diversity import DiversityMetric

        return DiversityMetric()


@mmgen.hookimpl
def register_metrics():
    return [CaptionScores, Diversity]
