"""The tasks' data sets in the formats that they are published in: the keys that recipes have for them."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, StringConstraints

import mmgen
from mmgen.configs import RelativeTo

SplitName = Annotated[str, StringConstraints(pattern=r"^\w+$")]


class Published(mmgen.DatasetConfig):
    """What all published data sets share. Only the splits that are used (`train`, `validate_on`, `evaluate`) are read
    and need files; all other paths are relative to `folder`."""

    folder: Path = Field(description="where the files lie, as they come out of the published archives")
    images: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="folder of raw images, searched with its subfolders"
    )
    missing: Literal["drop", "keep", "error"] = Field(
        "drop",
        description="examples whose image has no file in `images`, where that is given: left out and counted, kept, or "
        "an error",
    )

    def names(self) -> tuple[str, ...]:
        """The splits that there are."""
        raise NotImplementedError

    def used(self) -> tuple[str, ...]:
        """The splits that are read."""
        return tuple(name for name in self.names() if name in (self.train, self.validate_on, self.evaluate))

    def model_post_init(self, context: Any) -> None:
        for key in ("train", "evaluate"):
            if getattr(self, key) not in self.names():
                raise ValueError(
                    f"{key}: {self.type} has no split '{getattr(self, key)}'; there are: {', '.join(self.names())}"
                )


class FileEach(Published):
    """Data sets with a file a split; splits may be added."""

    published: ClassVar[tuple[str, ...]] = ("train", "val", "test")

    files: Annotated[dict[SplitName, Path], RelativeTo("folder")] = Field(
        {}, description="split -> its file (Flickr30K Entities: the list of its images), instead of the published name"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.published, *self.files)))


class VqaAnswers(Published):
    """VQA's questions and what people answered (VQA 1.0, VQA 2.0, OK-VQA): to choose an answer, or to write one.

    Each file of a split may be named: `questions = { train = ["a.json", "b.json"] }`. A split without annotations, as
    test is, has no answers. (`vqa` has the same questions as what to write.)
    """

    type: Literal["vqa_answers"] = "vqa_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)

    evaluate: str = Field("val", description="the split that every step answers and is scored on")
    release: Literal["1.0", "2.0", "okvqa"] = Field("2.0", description="whose file names")
    questions: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of questions, instead of the published one"
    )
    annotations: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of answers, instead of the published one; [] for none"
    )
    answers: int = Field(3129, ge=1, description="answers to choose from: the most common ones of the split `train`")
    min_count: int = Field(1, ge=1, description="how many questions an answer must be the most common one of")
    vocabulary: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="answers to choose from, in a checkpoint's order: lines (Pythia's answers_vqa.txt) or JSON "
        "(LXMERT's trainval_label2ans.json)",
    )
    held_out: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="images to test on, a number a line (a minival): `train` has no question about them, other splits "
        "that have any have no others",
    )
    learn_from: Literal["most_common", "all"] = Field(
        "most_common", description="targets outside of the split to evaluate: the most common answer, or all ten"
    )

    def names(self) -> tuple[str, ...]:
        published = ("train", "val") if self.release == "okvqa" else ("train", "val", "test", "test_dev")
        return tuple(dict.fromkeys((*published, *self.questions)))

    @classmethod
    def exporters(cls):
        from . import export

        return (export.Vqa2(),)

    def build(self):
        from .vqa import VqaFiles

        return VqaFiles(self)


class Refcoco(Published):
    """Referring expressions about objects of COCO's pictures (RefCOCO, RefCOCO+, RefCOCOg): an expression, a box.

    `refs(...).p` is a pickle. It is read without running anything, and may also be JSON of the same content.
    """

    type: Literal["refcoco"] = "refcoco"
    labels: ClassVar[tuple[str, ...]] = ("box",)

    validate_on: str = Field("val", description="the split whose loss is watched while training")
    evaluate: str = Field("val", description="the split that every step predicts for and is scored on")
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
        from .refcoco import RefcocoFiles

        return RefcocoFiles(self)


class Nlvr2(FileEach):
    """NLVR2: is a statement true of two photographs?"""

    type: Literal["nlvr2"] = "nlvr2"
    published = ("train", "dev", "test1", "test2")
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    validate_on: str = Field("dev", description="the split whose loss is watched while training")
    evaluate: str = Field("test1", description="the split that every step predicts for and is scored on")
    pairs: Literal["all", "balanced", "unbalanced"] = Field(
        "all", description="of dev and test1 all pairs, or one of the published subsets; train is always whole"
    )

    @classmethod
    def exporters(cls):
        from . import export

        return (export.Nlvr2(),)

    def build(self):
        from .nlvr2 import Nlvr2Files

        return Nlvr2Files(self)


class Vcr(FileEach):
    """VCR: which of four answers is right, and which of four rationales. Its `images` are vcr1images, whose metadata
    lie beside the pictures."""

    type: Literal["vcr"] = "vcr"
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")

    evaluate: str = Field("val", description="the split that every step predicts for and is scored on")
    asks: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, as the leaderboard wants it, rationales of "
        "each of the four answers too",
    )

    @classmethod
    def exporters(cls):
        from . import export_vcr

        return (export_vcr.Vcr(),)

    def build(self):
        from .vcr import VcrFiles

        return VcrFiles(self)


class VcrTexts(Vcr):
    """VCR's texts one by one, each choice behind its question an example of its own: right or wrong, as VisualBERT is
    pretrained on them."""

    type: Literal["vcr_texts"] = "vcr_texts"  # type: ignore[assignment]
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    @classmethod
    def exporters(cls):
        return ()

    def build(self):
        from .vcr import VcrTextFiles

        return VcrTextFiles(self)


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
        from .flickr30k import Flickr30kFiles

        return Flickr30kFiles(self)


class CocoCaptions(Published):
    """COCO's captions, an example an image with all of its captions: to pretrain from, or to learn to write.

    Each split may have several files: `files = { train = ["captions_train2014.json", "captions_val2014.json"] }`, with
    `without` for those images that are to be tested on.
    """

    type: Literal["coco_captions"] = "coco_captions"
    validate_on: str = Field("val", description="the split whose loss is watched while training")
    evaluate: str = Field("val", description="the split that every step writes for and is scored on")

    files: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of captions, instead of the published name"
    )
    without: Annotated[Path | None, RelativeTo("folder")] = Field(
        None, description="images that no split but `evaluate` has: a text file, an image's number a line"
    )

    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(["train", "val", *self.files]))

    @classmethod
    def exporters(cls):
        from . import export

        return (export.CocoCaptions(),)

    def build(self):
        from .coco_captions import CocoCaptionFiles

        return CocoCaptionFiles(self)
