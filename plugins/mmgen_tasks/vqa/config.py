"""Configs of VQA: data set, objective, metric, card, and the drawn data set `scene_answers`.

The recipe keys of its data sets, its objective and its metric."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from mmgen_scenes import Drawn
from mmgen_vision.configs import Dropout, Published, SplitName
from pydantic import Field

import mmgen
from mmgen.configs import RelativeTo


class VqaAnswers(Published):
    """VQA's questions and the answers of people (VQA 1.0, VQA 2.0, OK-VQA): to choose an answer, or to generate one.

    A split may have several files: `questions = { train = ["a.json", "b.json"] }`. A split without annotations, such
    as test, has no answers. (The data set `vqa` has the same questions as texts to generate.)
    """

    type: Literal["vqa_answers"] = "vqa_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)

    test_split: str = Field("val", description="the split that every step predicts and is scored on")
    release: Literal["1.0", "2.0", "okvqa"] = Field("2.0", description="the release, which decides the file names")
    questions: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its question files, instead of the published file"
    )
    annotations: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its annotation files, instead of the published file; [] for none"
    )
    num_answers: int = Field(
        3129, ge=1, description="size of the answer vocabulary: the most common answers of the split `train`"
    )
    min_count: int = Field(
        1, ge=1, description="at least this many questions must have an answer as their most common one"
    )
    vocabulary: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="the answer vocabulary, in a checkpoint's order: lines (Pythia's answers_vqa.txt) or JSON "
        "(LXMERT's trainval_label2ans.json)",
    )
    held_out: Annotated[Path | None, RelativeTo("folder")] = Field(
        None,
        description="images to test on, one number per line (a minival): `train` leaves out their questions, any other "
        "split that has some of them has only their questions",
    )
    train_targets: Literal["most_common", "all"] = Field(
        "most_common", description="targets outside of the split to evaluate: the most common answer, or all ten"
    )

    def names(self) -> tuple[str, ...]:
        published = ("train", "val") if self.release == "okvqa" else ("train", "val", "test", "test_dev")
        return tuple(dict.fromkeys((*published, *self.questions)))

    def build(self):
        from .files import VqaFiles

        return VqaFiles(self)


class AnswerClasses(mmgen.ObjectiveConfig):
    """Classifies a question by its answer (VQA): one logit per answer of the vocabulary, from the state at the [MASK]
    after the question, trained on the share of people who gave the answer.

    The defaults are VisualBERT's (Kullback-Leibler). VL-BERT uses loss = "bce" and transform = true.
    """

    type: Literal["answer_classes"] = "answer_classes"
    gives = "label"
    required_labels = ("answers",)

    question: str = Field(
        "question", description="the input whose last slot predicts the answer: a text with append_mask = true"
    )
    loss: Literal["kl", "bce"] = Field(
        "kl",
        description="kl: one distribution over all answers; bce: every answer separately, summed over the answers",
    )
    transform: bool = Field(False, description="the head begins with a copy of the masked-LM head's transform")
    dropout: float = Dropout
    top_k: int = Field(10, ge=1, description="how many of the most probable answers a prediction lists")

    def build(self, backbone, vocabularies):
        from .objective import AnswerClassesObjective

        return AnswerClassesObjective(self, backbone, vocabularies["answers"])

    def errors(self, inputs):
        if not getattr(inputs.get(self.question), "append_mask", False):
            return f"needs a [MASK] after '{self.question}'; give the step that input with append_mask = true"
        return ""


class VqaAccuracy(mmgen.MetricConfig):
    """VQA's official accuracy in percent, over all questions and by answer type: an answer is right if three people of
    ten gave it (Antol et al., 2015)."""

    type: Literal["vqa_accuracy"] = "vqa_accuracy"
    judges = frozenset({"text", "label"})
    required_labels = ("answers",)

    by_question_type: bool = Field(False, description="add a column for every question type; VQA 2.0 has 65")

    @classmethod
    def result_files(cls):
        from .results import VqaResults

        return VqaResults()

    def build(self):
        from .metric import VqaAccuracyMetric

        return VqaAccuracyMetric(self.by_question_type)


class SceneAnswers(Drawn):
    """Questions about drawn scenes with one answer, and the answers of ten people: VQA, drawn.

    Every form of question is balanced: without the picture, always giving the most common answer of each form is right
    35 times in 100.
    """

    type: Literal["scene_answers"] = "scene_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)
    questions: int = Field(4, ge=1, le=6, description="questions per scene, one example each")
    train_targets: Literal["most_common", "all"] = Field(
        "most_common", description="targets outside of the split to evaluate: the most common answer, or all ten"
    )
    unanswerable: float = Field(
        0.0,
        ge=0,
        lt=1,
        description='share of the questions that name what the scene does not have; nine people answer "unanswerable", '
        "as in VizWiz",
    )

    def build(self):
        from .drawn import DrawnAnswers

        return DrawnAnswers(self)


class AnswerBars(mmgen.RendererConfig):
    """VQA: the most probable answers as bars, and which of these people gave."""

    type: Literal["vqa_card"] = "vqa_card"
    renders = frozenset({"label"})
    required_labels = ("answers",)

    def build(self):
        from .card import AnswerCard

        return AnswerCard()
