"""Configs of referring expressions: data set, objective, metric, card, and the drawn data set `scene_expressions`.

The recipe keys of its data sets, its objective and its metric."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from mmgen_scenes import Proposals
from mmgen_vision.configs import By, Dropout, Published, without_regions
from pydantic import Field, model_validator

import mmgen
from mmgen.configs import RelativeTo


class Refcoco(Published):
    """Referring expressions about objects of COCO's pictures (RefCOCO, RefCOCO+, RefCOCOg): an expression, a box.

    `refs(...).p` is a pickle. It is read without running code, and may also be JSON of the same content.
    """

    type: Literal["refcoco"] = "refcoco"
    labels: ClassVar[tuple[str, ...]] = ("box",)

    validation_split: str = Field("val", description="the split whose loss is measured during training")
    test_split: str = Field("val", description="the split that every step predicts and is scored on")
    release: Literal["refcoco", "refcoco+", "refcocog"] = Field(
        "refcoco+", description="the release; its files are in `folder`, or in the subfolder of this name"
    )
    split_by: Literal["unc", "google", "umd"] | None = Field(
        None, description="the authors of the splits; unc by default, umd for refcocog"
    )
    refs: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="the file of expressions, instead of refs(SPLIT_BY).p"
    )
    instances: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="the file of boxes, instead of instances.json"
    )

    def splitter(self) -> str:
        """The authors of the splits that are used."""
        return self.split_by or ("umd" if self.release == "refcocog" else "unc")

    def names(self) -> tuple[str, ...]:
        if self.splitter() == "unc":
            return ("train", "val", "testA", "testB")
        return ("train", "val", "test")

    def build(self):
        from .files import RefcocoFiles

        return RefcocoFiles(self)


class RegionChoice(mmgen.ObjectiveConfig):
    """Which region an expression refers to (RefCOCO+; VL-BERT, section 4.2): one logit per region, from the region's
    state. Regions that overlap the right box by an IoU of .5 or more are right."""

    type: Literal["region_choice"] = "region_choice"
    gives = "region"
    required_labels = ("box",)

    image: str = Field("image", description="the input whose regions are the candidates")
    loss: Literal["bce", "softmax"] = Field(
        "bce", description="bce: every region alone, a mean over regions; softmax: all right regions against the rest"
    )
    transform: bool = Field(True, description="add a hidden layer of the states' width to the head")
    init_from: str = Field(
        "", description="the masked_regions objective whose hidden layer initialises this one, as in VL-BERT's code"
    )
    whole_image: bool = Field(
        False,
        description="the whole picture, VL-BERT's first region, may be chosen too, as in VL-BERT's code",
    )
    dropout: float = Dropout

    @model_validator(mode="after")
    def _hidden(self):
        if self.init_from and not self.transform:
            raise ValueError(
                "init_from initialises the hidden layer, but transform = false removes that layer; remove one of them"
            )
        return self

    def build(self, backbone, vocabularies):
        from .objective import RegionChoiceObjective

        return RegionChoiceObjective(self, backbone)

    def errors(self, inputs):
        return without_regions(self.image, inputs)


class BoxAccuracy(mmgen.MetricConfig):
    """Referring expressions whose predicted box is right, in percent: an intersection over union of 0.5 or more."""

    type: Literal["box_accuracy"] = "box_accuracy"
    judges = frozenset({"region"})
    required_labels = ("box",)

    by: tuple[str, ...] = By

    @classmethod
    def result_files(cls):
        from .results import BoxResults

        return BoxResults()

    def build(self):
        from .metric import BoxAccuracyMetric

        return BoxAccuracyMetric(self.by)


class SceneExpressions(Proposals):
    """Expressions that fit exactly one thing of a drawn scene with several of its kind: RefCOCO+, drawn.

    An expression is as short as possible, and never says left or right. A random box is right 18 times in 100 among
    the things' boxes, and 5 times among 36 proposals; the proposals have a right box for 98 things in 100.
    """

    type: Literal["scene_expressions"] = "scene_expressions"
    labels: ClassVar[tuple[str, ...]] = ("box",)
    proposals: int = Field(0, ge=0, le=100, description=Proposals.model_fields["proposals"].description)
    same_kind: int = Field(3, ge=2, le=4, description="how many things of one kind, not all alike, a scene has")
    expressions: int = Field(2, ge=1, le=4, description="at most this many expressions per scene, one example each")
    in_sentences: bool = Field(
        False,
        description='put expressions into random sentences, such as "the picture shows a red dog", so that what is '
        "learned does not depend on where its words stand",
    )

    def build(self):
        from .drawn import DrawnExpressions

        return DrawnExpressions(self)


class ChosenRegion(mmgen.RendererConfig):
    """Referring expressions: the chosen region beside the right one, and how much they overlap."""

    type: Literal["refcoco_card"] = "refcoco_card"
    renders = frozenset({"region"})
    required_labels = ("box",)

    def build(self):
        from .card import RegionCard

        return RegionCard()
