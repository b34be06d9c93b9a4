"""RefCOCO, RefCOCO+ and RefCOCOg: which box an expression is about.

The keys that recipes have for its data sets, its objective and its metric."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from mmgen_scenes import Proposals
from mmgen_vl.configs import Dropout, Published, without_regions
from pydantic import Field, model_validator

import mmgen
from mmgen.configs import RelativeTo


class Refcoco(Published):
    """Referring expressions about objects of COCO's pictures (RefCOCO, RefCOCO+, RefCOCOg): an expression, a box.

    `refs(...).p` is a pickle. It is read without running anything, and may also be JSON of the same content.
    """

    type: Literal["refcoco"] = "refcoco"
    labels: ClassVar[tuple[str, ...]] = ("box",)

    validation_split: str = Field("val", description="the split whose loss is watched while training")
    test_split: str = Field("val", description="the split that every step predicts for and is scored on")
    release: Literal["refcoco", "refcoco+", "refcocog"] = Field(
        "refcoco+", description="which of the three; its files lie in `folder`, or in the subfolder of this name"
    )
    split_by: Literal["unc", "google", "umd"] | None = Field(
        None, description="whose splits; by default unc, and umd for refcocog"
    )
    refs: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="the file of expressions, instead of refs(SPLIT_BY).p"
    )
    instances: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="the file of boxes, instead of instances.json"
    )

    def splitter(self) -> str:
        """Whose splits are used."""
        return self.split_by or ("umd" if self.release == "refcocog" else "unc")

    def names(self) -> tuple[str, ...]:
        if self.splitter() == "unc":
            return ("train", "val", "testA", "testB")
        return ("train", "val", "test")

    @classmethod
    def exporters(cls):
        from . import export

        return (export.RefcocoPlus(),)

    def build(self):
        from .files import RefcocoFiles

        return RefcocoFiles(self)


class RegionChoice(mmgen.ObjectiveConfig):
    """Which region an expression speaks of (RefCOCO+; VL-BERT, section 4.2): a logit a region, of its own state. Those
    that overlap the right box by an IoU of .5 or more are right."""

    type: Literal["region_choice"] = "region_choice"
    gives = "region"
    labels = ("box",)

    image: str = Field("image", description="the input whose regions there are to choose from")
    loss: Literal["bce", "softmax"] = Field(
        "bce", description="bce: each region by itself, a mean over regions; softmax: all right ones against the others"
    )
    transform: bool = Field(True, description="the head has a hidden layer, as wide as the states")
    init_from: str = Field(
        "", description="the masked_regions objective whose hidden layer this one begins with, as in VL-BERT's code"
    )
    whole_image: bool = Field(
        False,
        description="the whole picture, which VL-BERT has in front of its regions, may be chosen too, as in its code",
    )
    dropout: float = Dropout

    @model_validator(mode="after")
    def _hidden(self):
        if self.init_from and not self.transform:
            raise ValueError("init_from is about the hidden layer, and transform = false leaves that out; drop one")
        return self

    def build(self, backbone, labels):
        from .objective import RegionChoiceObjective

        return RegionChoiceObjective(self, backbone)

    def errors(self, inputs):
        return without_regions(self.image, inputs)


class BoxAccuracy(mmgen.MetricConfig):
    """Referring expressions whose box is right, in percent: an intersection over union of 0.5 or more."""

    type: Literal["box_accuracy"] = "box_accuracy"
    judges = frozenset({"region"})
    labels = ("box",)

    @classmethod
    def result_files(cls):
        from .results import BoxResults

        return BoxResults()

    def build(self):
        from .metric import BoxAccuracyMetric

        return BoxAccuracyMetric()


class SceneExpressions(Proposals):
    """Expressions that fit one thing of a drawn scene, which has others of its kind: RefCOCO+, drawn.

    An expression is as short as it can be, and never says left or right. A box by lot is right 18 times in 100 among
    the things' own, and 5 times among 36 proposals, which have a right one for 98 things in 100.
    """

    type: Literal["scene_expressions"] = "scene_expressions"
    labels: ClassVar[tuple[str, ...]] = ("box",)
    proposals: int = Field(0, ge=0, le=100, description=Proposals.model_fields["proposals"].description)
    same_kind: int = Field(3, ge=2, le=4, description="things of one kind, not all alike, that a scene has")
    expressions: int = Field(2, ge=1, le=4, description="expressions a scene at most, each an example")

    def build(self):
        from .drawn import DrawnExpressions

        return DrawnExpressions(self)


class ChosenRegion(mmgen.RendererConfig):
    """Referring expressions: the chosen region beside the right one, and how much they overlap."""

    type: Literal["refcoco_card"] = "refcoco_card"
    renders = frozenset({"region"})
    labels = ("box",)

    def build(self):
        from .card import RegionCard

        return RegionCard()
