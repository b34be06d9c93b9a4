"""VQA: questions about a picture, and what people answered.

The keys that recipes have for its data sets, its objective and its metric."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from mmgen_scenes import Drawn
from mmgen_vl.configs import Dropout, Published, SplitName
from pydantic import Field

import mmgen
from mmgen.configs import RelativeTo


class VqaAnswers(Published):
    """VQA's questions and what people answered (VQA 1.0, VQA 2.0, OK-VQA): to choose an answer, or to write one.

    Each file of a split may be named: `questions = { train = ["a.json", "b.json"] }`. A split without annotations, as
    test is, has no answers. (`vqa` has the same questions as what to write.)
    """

    type: Literal["vqa_answers"] = "vqa_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)

    test_split: str = Field("val", description="the split that every step answers and is scored on")
    release: Literal["1.0", "2.0", "okvqa"] = Field("2.0", description="whose file names")
    questions: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of questions, instead of the published one"
    )
    annotations: Annotated[dict[SplitName, tuple[Path, ...]], RelativeTo("folder")] = Field(
        {}, description="split -> its files of answers, instead of the published one; [] for none"
    )
    num_answers: int = Field(
        3129, ge=1, description="answers to choose from: the most common ones of the split `train`"
    )
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
    train_targets: Literal["most_common", "all"] = Field(
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
        from .files import VqaFiles

        return VqaFiles(self)


class AnswerClasses(mmgen.ObjectiveConfig):
    """Which of the known answers is given to a question (VQA): a logit an answer, of the state at the [MASK] behind the
    question, against how many people gave it.

    As it is, VisualBERT's (Kullback-Leibler). VL-BERT's has loss = "bce" and transform = true.
    """

    type: Literal["answer_classes"] = "answer_classes"
    gives = "label"
    labels = ("answers",)

    question: str = Field("question", description="the input whose last slot answers: a text with append_mask = true")
    loss: Literal["kl", "bce"] = Field(
        "kl",
        description="kl: one distribution over all answers; bce: each answer by itself, summed over the answers",
    )
    transform: bool = Field(
        False, description="the head begins with a copy of what stands before the words of the masked-LM head"
    )
    dropout: float = Dropout
    top_k: int = Field(10, ge=1, description="how many answers a prediction tells the probabilities of")

    def build(self, backbone, labels):
        from .objective import AnswerClassesObjective

        return AnswerClassesObjective(self, backbone, labels["answers"])

    def errors(self, inputs):
        if not getattr(inputs.get(self.question), "append_mask", False):
            return f"reads the [MASK] behind '{self.question}'; the step needs such an input with append_mask = true"
        return ""


class VqaAccuracy(mmgen.MetricConfig):
    """VQA's official accuracy in percent, of all questions and by answer type: three people of ten who say the same
    make an answer right (Antol et al., 2015)."""

    type: Literal["vqa_accuracy"] = "vqa_accuracy"
    judges = frozenset({"text", "label"})
    labels = ("answers",)

    by_question_type: bool = Field(False, description="a column for each question type too; VQA 2.0 has 65")

    @classmethod
    def result_files(cls):
        from .results import VqaResults

        return VqaResults()

    def build(self):
        from .metric import VqaAccuracyMetric

        return VqaAccuracyMetric(self.by_question_type)


class SceneAnswers(Drawn):
    """Questions about drawn scenes that have one answer, and what ten people say: VQA, drawn.

    Every form of question is balanced: who has not seen the picture and says each form's most common answer is right
    35 times in 100.
    """

    type: Literal["scene_answers"] = "scene_answers"
    labels: ClassVar[tuple[str, ...]] = ("answers",)
    questions: int = Field(4, ge=1, le=6, description="questions a scene, each an example")
    train_targets: Literal["most_common", "all"] = Field(
        "most_common", description="targets outside of the split to evaluate: the most common answer, or all ten"
    )

    def build(self):
        from .drawn import DrawnAnswers

        return DrawnAnswers(self)


class AnswerBars(mmgen.RendererConfig):
    """VQA: the most probable answers as bars, and which of them people gave."""

    type: Literal["vqa_card"] = "vqa_card"
    renders = frozenset({"label"})
    labels = ("answers",)

    def build(self):
        from .card import AnswerCard

        return AnswerCard()
