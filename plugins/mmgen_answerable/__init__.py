"""The config of `answerable`: does a model of one's own answer the questions that another wrote about a picture?"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.configs import PathOrName


class Answerable(mmgen.MetricConfig):
    """A round trip: an answerer reads the picture and the generated question. It needs no references.

    The answerer is a step of a run, or an export, that reads a question and a picture: a step with `answer_classes`, or
    one that writes answers. docs/scoring.md defines the columns.
    """

    type: Literal["answerable"] = "answerable"
    needs_pictures: ClassVar[bool] = True
    needs_device: ClassVar[bool] = True

    answerer: Annotated[str, PathOrName()] = Field(
        description='the model that answers: folder of a run or an export, or "hf:user/name"'
    )
    step: str = Field("", description="the step of the run; empty: its default_step, or its best one")
    question: str = Field(
        "",
        description="the input of the answerer that reads the question; empty: the one that reads the field 'question'",
    )
    unanswerable: tuple[str, ...] = Field(
        ("unanswerable", "unsuitable"), description="answers that say that a question has no answer, as VizWiz's do"
    )
    threshold: float = Field(
        0.5, gt=0, le=1, description="a question is answered if the confidence in its answer is at least this"
    )
    condition: str = Field(
        "",
        description="the input or fact of an example with the answer for which its question was generated; empty: the "
        "answer of its prompt, where the prompt is 'answer: ...'",
    )
    other_pictures: int = Field(
        3,
        ge=0,
        le=20,
        description="pictures of other examples that each question is also answered about, for picture_gain",
    )
    batch_size: int = Field(64, ge=1, description="questions answered at a time")

    def build(self):
        from .metric import AnswerableMetric

        return AnswerableMetric(self)


@mmgen.hookimpl
def register_metrics():
    return [Answerable]
