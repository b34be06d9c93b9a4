"""Configs of Flickr30K Entities: data set, objective, metric, card, and the drawn data set `scene_phrases`.

The recipe keys of its data sets, its objective and its metric."""

from typing import ClassVar, Literal

from mmgen_scenes import Proposals
from mmgen_vision.configs import FileEach, without_regions
from pydantic import Field

import mmgen


class Flickr30kEntities(FileEach):
    """Flickr30K Entities: which box of a picture does each phrase of its caption refer to?

    `folder` has Sentences and Annotations, from annotations.zip, and the splits' files.
    """

    type: Literal["flickr30k_entities"] = "flickr30k_entities"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)

    def build(self):
        from .files import Flickr30kFiles

        return Flickr30kFiles(self)


class PhraseRegions(mmgen.ObjectiveConfig):
    """Which regions a caption's phrases refer to (Flickr30K Entities; VisualBERT, section 4.4): one attention head,
    from the last word piece of a phrase to the regions. The target is uniform over the regions that overlap the
    phrase's box by an IoU of .5 or more."""

    type: Literal["phrase_regions"] = "phrase_regions"
    gives = "boxes"
    required_labels = ("phrases",)
    query_labels = ("phrases",)

    caption: str = Field("caption", description="the input with the phrases")
    image: str = Field("image", description="the input whose regions are the candidates")
    width: int = Field(64, ge=1, description="width of the queries and keys; BERT's heads have 64")

    def build(self, backbone, vocabularies):
        from .objective import PhraseRegionsObjective

        return PhraseRegionsObjective(self, backbone)

    def errors(self, inputs):
        if self.caption not in inputs or inputs[self.caption].hides != "words":
            return f"needs the phrases of '{self.caption}'; give the step an input '{self.caption}' of type \"text\""
        if inputs[self.caption].fields != (self.caption,):
            return (
                f"needs the phrases of '{self.caption}', but that input reads '{inputs[self.caption].fields[0]}'; "
                "input and field must have the same name"
            )
        if getattr(inputs[self.caption], "append_mask", False):
            return (
                f"needs the phrases of '{self.caption}', which must end in a word; set append_mask = false for that "
                "input"
            )
        return without_regions(self.image, inputs)


class PhraseRecall(mmgen.MetricConfig):
    """Recall of phrases' boxes at 1, 5 and 10, and the upper bound, in percent (Plummer et al., 2015)."""

    type: Literal["phrase_recall"] = "phrase_recall"
    judges = frozenset({"boxes"})
    required_labels = ("phrases",)

    by_phrase_type: bool = Field(False, description="add a column of R@1 for each type of phrase")

    @classmethod
    def result_files(cls):
        from .results import PhraseResults

        return PhraseResults()

    def build(self):
        from .metric import PhraseRecallMetric

        return PhraseRecallMetric(self.by_phrase_type)


class ScenePhrases(Proposals):
    """Boxes of the things that captions of drawn scenes name: Flickr30K Entities, drawn.

    A phrase that names several things has one box around all of them. Of 36 proposals 5 in 100 are right; 98 phrases in
    100 have a right proposal.
    """

    type: Literal["scene_phrases"] = "scene_phrases"
    labels: ClassVar[tuple[str, ...]] = ("phrases",)
    captions: int = Field(2, ge=1, le=10, description="captions per scene: the first captions of the data set `scenes`")

    def build(self):
        from .drawn import DrawnPhrases

        return DrawnPhrases(self)


class PhraseBoxes(mmgen.RendererConfig):
    """Flickr30K Entities: a phrase marked in its caption, the likeliest box, and the rank of the right box."""

    type: Literal["flickr30k_card"] = "flickr30k_card"
    renders = frozenset({"boxes"})
    required_labels = ("phrases",)

    def build(self):
        from .card import PhraseCard

        return PhraseCard()
