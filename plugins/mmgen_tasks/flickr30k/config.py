"""Flickr30K Entities: which box each phrase of a caption is about.

The keys that recipes have for its data sets, its objective and its metric."""

from typing import ClassVar, Literal

from mmgen_scenes import Proposals
from mmgen_vl.configs import FileEach, without_regions
from pydantic import Field

import mmgen


class Flickr30kEntities(FileEach):
    """Flickr30K Entities: which box of a picture is each phrase of its caption about?

    `folder` has Sentences and Annotations, of annotations.zip, and the splits' files.
    """

    type: Literal["flickr30k_entities"] = "flickr30k_entities"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)

    @classmethod
    def exporters(cls):
        from . import export

        return (export.Flickr30k(),)

    def build(self):
        from .files import Flickr30kFiles

        return Flickr30kFiles(self)


class PhraseRegions(mmgen.ObjectiveConfig):
    """Which regions the phrases of a caption speak of (Flickr30K Entities; VisualBERT, section 4.4): one head of
    attention, from the last word piece of a phrase to the regions. It learns to spread evenly over those that overlap
    the phrase's box by an IoU of .5 or more."""

    type: Literal["phrase_regions"] = "phrase_regions"
    gives = "boxes"
    labels = ("phrases",)

    caption: str = Field("caption", description="the input that has the phrases")
    image: str = Field("image", description="the input whose regions there are to choose from")
    width: int = Field(64, ge=1, description="of the queries and keys; BERT's heads are 64 wide")

    def build(self, backbone, labels):
        from .objective import PhraseRegionsObjective

        return PhraseRegionsObjective(self, backbone)

    def errors(self, inputs):
        if self.caption not in inputs or inputs[self.caption].hides != "words":
            return f"reads phrases of '{self.caption}'; the step needs such an input of type \"text\""
        if inputs[self.caption].fields != (self.caption,):
            return (
                f"reads phrases of '{self.caption}', and that input reads '{inputs[self.caption].fields[0]}'; call the "
                "input as the field is called"
            )
        if getattr(inputs[self.caption], "append_mask", False):
            return f"reads phrases of '{self.caption}', which must end in its own words; give it append_mask = false"
        return without_regions(self.image, inputs)


class PhraseRecall(mmgen.MetricConfig):
    """Recall at 1, 5 and 10 of phrases' boxes, and its upper bound, in percent (Plummer et al., 2015)."""

    type: Literal["phrase_recall"] = "phrase_recall"
    judges = frozenset({"boxes"})
    labels = ("phrases",)

    by_phrase_type: bool = Field(False, description="a column of R@1 for each type of phrase too")

    @classmethod
    def result_files(cls):
        from .results import PhraseResults

        return PhraseResults()

    def build(self):
        from .metric import PhraseRecallMetric

        return PhraseRecallMetric(self.by_phrase_type)


class ScenePhrases(Proposals):
    """Where the things are that captions of drawn scenes name: Flickr30K Entities, drawn.

    What is named several times over has the box around all of it. Of 36 proposals 5 in 100 are right; 98 phrases in 100
    have a right one.
    """

    type: Literal["scene_phrases"] = "scene_phrases"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)
    captions: int = Field(2, ge=1, le=10, description="captions a scene: the first of those that `scenes` has")

    def build(self):
        from .drawn import DrawnPhrases

        return DrawnPhrases(self)


class PhraseBoxes(mmgen.RendererConfig):
    """Flickr30K Entities: a phrase marked in its caption, the likeliest box, and the rank of the right one."""

    type: Literal["flickr30k_card"] = "flickr30k_card"
    renders = frozenset({"boxes"})
    labels = ("phrases",)

    def build(self):
        from .card import PhraseCard

        return PhraseCard()
