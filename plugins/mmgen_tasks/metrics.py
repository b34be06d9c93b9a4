"""Configs of the official metrics."""

from typing import Literal

from pydantic import Field

import mmgen


class VqaAccuracy(mmgen.MetricConfig):
    """VQA's official accuracy in percent, of all questions and by answer type: three people of ten who say the same
    make an answer right (Antol et al., 2015)."""

    type: Literal["vqa_accuracy"] = "vqa_accuracy"
    judges = frozenset({"text", "label"})
    labels = ("answers",)

    question_types: bool = Field(False, description="a column for each question type too; VQA 2.0 has 65")

    @classmethod
    def result_files(cls):
        from .results import VqaResults

        return VqaResults()

    def build(self):
        from .vqa_accuracy import VqaAccuracyMetric

        return VqaAccuracyMetric(self.question_types)


class PairAccuracy(mmgen.MetricConfig):
    """NLVR2's accuracy and consistency, in percent (Suhr et al., 2019)."""

    type: Literal["pair_accuracy"] = "pair_accuracy"
    judges = frozenset({"label"})
    labels = ("truth",)

    @classmethod
    def result_files(cls):
        from .results import PairResults

        return PairResults()

    def build(self):
        from .pair_accuracy import PairAccuracyMetric

        return PairAccuracyMetric()


class ChoiceAccuracy(mmgen.MetricConfig):
    """VCR's accuracies in percent: answers (Q->A), rationales (QA->R), and both (Q->AR) (Zellers et al., 2019)."""

    type: Literal["choice_accuracy"] = "choice_accuracy"
    judges = frozenset({"choice"})
    labels = ("choice",)

    @classmethod
    def result_files(cls):
        from .vcr_results import VcrResults

        return VcrResults()

    def build(self):
        from .choice_accuracy import ChoiceAccuracyMetric

        return ChoiceAccuracyMetric()


class BoxAccuracy(mmgen.MetricConfig):
    """Referring expressions whose box is right, in percent: an intersection over union of 0.5 or more."""

    type: Literal["box_accuracy"] = "box_accuracy"
    judges = frozenset({"region"})
    labels = ("box",)

    @classmethod
    def result_files(cls):
        from .box_results import BoxResults

        return BoxResults()

    def build(self):
        from .box_accuracy import BoxAccuracyMetric

        return BoxAccuracyMetric()


class PhraseRecall(mmgen.MetricConfig):
    """Recall at 1, 5 and 10 of phrases' boxes, and its upper bound, in percent (Plummer et al., 2015)."""

    type: Literal["phrase_recall"] = "phrase_recall"
    judges = frozenset({"boxes"})
    labels = ("phrases",)

    types: bool = Field(False, description="a column of R@1 for each type of phrase too")

    @classmethod
    def result_files(cls):
        from .box_results import PhraseResults

        return PhraseResults()

    def build(self):
        from .phrase_recall import PhraseRecallMetric

        return PhraseRecallMetric(self.types)
