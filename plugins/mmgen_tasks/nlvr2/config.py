"""NLVR2: is a statement true of two photographs?

The recipe keys of its data sets, its objective and its metric."""

from typing import ClassVar, Literal

from mmgen_scenes import Drawn
from mmgen_vl.configs import Dropout, FileEach
from pydantic import Field

import mmgen


class Nlvr2(FileEach):
    """NLVR2: is a statement true of two photographs?"""

    type: Literal["nlvr2"] = "nlvr2"
    published = ("train", "dev", "test1", "test2")
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    validation_split: str = Field("dev", description="the split whose loss is measured during training")
    test_split: str = Field("test1", description="the split that every step predicts and is scored on")
    pairs: Literal["all", "balanced", "unbalanced"] = Field(
        "all", description="all pairs of dev and test1, or one of the published subsets; train always has all pairs"
    )

    @classmethod
    def exporters(cls):
        from . import export

        return (export.Nlvr2(),)

    def build(self):
        from .files import Nlvr2Files

        return Nlvr2Files(self)


class TrueOrFalse(mmgen.ObjectiveConfig):
    """Whether a statement is true of one or more pictures (NLVR2; VisualBERT, section 4.3): two logits of the pooled
    state, cross-entropy."""

    type: Literal["true_or_false"] = "true_or_false"
    gives = "label"
    required_labels = ("truth",)
    pools = True

    dropout: float = Dropout

    def build(self, backbone, vocabularies):
        from .objective import TrueOrFalseObjective

        return TrueOrFalseObjective(self, backbone)


class PairAccuracy(mmgen.MetricConfig):
    """NLVR2's accuracy and consistency, in percent (Suhr et al., 2019)."""

    type: Literal["pair_accuracy"] = "pair_accuracy"
    judges = frozenset({"label"})
    required_labels = ("truth",)

    @classmethod
    def result_files(cls):
        from .results import PairResults

        return PairResults()

    def build(self):
        from .metric import PairAccuracyMetric

        return PairAccuracyMetric()


class ScenePairs(Drawn):
    """Statements about two drawn scenes side by side, true or false: NLVR2, drawn.

    A set has four pairs of scenes. Each statement is true of two pairs and false of the other two, so that the words
    alone do not help: chance is 50 in 100, and 1 in 16 for all four pairs of a statement.
    """

    type: Literal["scene_pairs"] = "scene_pairs"
    labels: ClassVar[tuple[str, ...]] = ("truth",)
    train_size: int = Field(300, ge=1, le=100_000, description="training sets, of four pairs (eight scenes) each")
    val_size: int = Field(10, ge=1, le=100_000, description="validation sets")
    test_size: int = Field(40, ge=1, le=100_000, description="test sets")
    statements: int = Field(2, ge=1, le=3, description="statements per set; each makes four examples, one per pair")

    def build(self):
        from .drawn import DrawnPairs

        return DrawnPairs(self)


class TruthBars(mmgen.RendererConfig):
    """NLVR2: the probability that a statement is true, and whether it is true."""

    type: Literal["nlvr2_card"] = "nlvr2_card"
    renders = frozenset({"label"})
    required_labels = ("truth",)

    def build(self):
        from .card import TruthCard

        return TruthCard()
