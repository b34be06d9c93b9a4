"""Configs of NLVR2: data set, objectives, metric, card, and the drawn data sets `scene_pairs` and `scene_statements`.

The recipe keys of its data sets, its objective and its metric."""

from typing import Annotated, ClassVar, Literal

from mmgen_scenes import Drawn
from mmgen_vision.configs import By, Dropout, FileEach
from pydantic import Field

import mmgen

from .drawn_forms import FORMS, SINGLE_FORMS

Arrangement = Annotated[
    Literal["row", "rows"],
    Field(
        description="row: the regions of both pictures in one row, as in VisualBERT; rows: a row for each, and a head "
        "over both"
    ),
]
Pictures = Field("image", description="the field of an example that holds its pictures")


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

    def build(self):
        from .files import Nlvr2Files

        return Nlvr2Files(self)


class TrueOrFalse(mmgen.ObjectiveConfig):
    """Whether a statement is true of one or more pictures (NLVR2; VisualBERT, section 4.3): two logits of the pooled
    state, cross-entropy.

    With arrangement = "rows" the statement stands in two rows, one for each of two pictures, and a head with a hidden
    layer reads both pooled states (LXMERT, section 3.3 of Tan and Bansal, 2019; MMF's VisualBERT for NLVR2).
    """

    type: Literal["true_or_false"] = "true_or_false"
    gives = "label"
    required_labels = ("truth",)
    pools = True

    arrangement: Arrangement = "row"
    pictures: str = Pictures
    dropout: float = Dropout

    @property
    def makes_rows(self):  # type: ignore[override]
        return self.arrangement == "rows"

    def build(self, backbone, vocabularies):
        from .objective import TrueOrFalseObjective

        return TrueOrFalseObjective(self, backbone)


class TextAssignment(mmgen.ObjectiveConfig):
    """Which of two pictures a caption belongs to: the first, the second, or neither, each a third of the time (ALBEF,
    section 3.5 of Li et al., 2021, which trains it before NLVR2). The other pictures are those of random examples."""

    type: Literal["text_assignment"] = "text_assignment"
    makes_rows = True
    pools = True

    arrangement: Arrangement = "row"
    pictures: str = Pictures
    caption: str = Field("caption", description="the field with the captions of a picture, one of which is drawn")

    def build(self, backbone, vocabularies):
        from .assignment import TextAssignmentObjective

        return TextAssignmentObjective(self, backbone)


class PairAccuracy(mmgen.MetricConfig):
    """NLVR2's accuracy and consistency, in percent (Suhr et al., 2019)."""

    type: Literal["pair_accuracy"] = "pair_accuracy"
    judges = frozenset({"label"})
    required_labels = ("truth",)

    by: tuple[str, ...] = By

    @classmethod
    def result_files(cls):
        from .results import PairResults

        return PairResults()

    def build(self):
        from .metric import PairAccuracyMetric

        return PairAccuracyMetric(self.by)


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
    forms: tuple[Literal[FORMS], ...] = Field(  # type: ignore[valid-type]
        (),
        description="statements of these forms only, about the same pictures; empty for all 14 forms, equally common",
    )
    pairings: int = Field(
        4,
        ge=4,
        le=28,
        multiple_of=2,
        description="pairs per training statement, at most: beyond 4, any two of a set's pictures make a pair, and "
        "the statement is true of half of them",
    )

    def build(self):
        from .drawn import DrawnPairs

        return DrawnPairs(self)


class SceneStatements(Drawn):
    """Statements about one drawn scene, a true and a false one of each form: what is there or not (as in POPE),
    colours, numbers, and the same words swapped (as in Winoground). Chance is 50 in 100, and 25 for both."""

    type: Literal["scene_statements"] = "scene_statements"
    labels: ClassVar[tuple[str, ...]] = ("truth",)
    statements: int = Field(
        6, ge=1, le=6, description="forms of statements per scene, at most; each makes two examples"
    )
    forms: tuple[Literal[SINGLE_FORMS], ...] = Field(  # type: ignore[valid-type]
        (), description="statements of these forms only; empty for all"
    )

    def build(self):
        from .drawn_single import DrawnStatements

        return DrawnStatements(self)


class TruthBars(mmgen.RendererConfig):
    """NLVR2: the probability that a statement is true, and whether it is true."""

    type: Literal["nlvr2_card"] = "nlvr2_card"
    renders = frozenset({"label"})
    required_labels = ("truth",)

    def build(self):
        from .card import TruthCard

        return TruthCard()
