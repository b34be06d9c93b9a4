"""What judges rate: the criteria of the BERT-gen paper, and the seven dimensions of QGEval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

READABILITY, CAPTION, IMAGE = "readability", "caption_relevance", "image_relevance"
ANSWER_CONSISTENCY = "answer_consistency"


@dataclass(frozen=True)
class Criterion:
    """One criterion, in the words that people and programs read.

    question         the question to the judge
    meaning          what the criterion means
    lowest, highest  the ends of the scale from 1 to 5
    shows            what is shown with the question: "caption", "picture", "answer"
    """

    question: str
    meaning: str
    lowest: str = "not at all"
    highest: str = "fully"
    shows: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, str, str, str]:
        return self.question, self.meaning, self.lowest, self.highest


PAPER: Mapping[str, Criterion] = {  # section 5 of What BERT Sees
    READABILITY: Criterion(
        "How well is the question written?", "Readability: how well the question is written", "badly", "well"
    ),
    CAPTION: Criterion(
        "How relevant is the question to the caption?",
        "Caption relevance: how relevant the question is to the caption",
        shows=("caption",),
    ),
    IMAGE: Criterion(
        "How relevant is the question to the picture?",
        "Image relevance: how relevant the question is to the picture",
        shows=("picture",),
    ),
}
QGEVAL: Mapping[str, Criterion] = {  # Fu et al. (2024), with a picture in place of the passage
    "fluency": Criterion(
        "How fluent is the question?", "Fluency: whether the question is grammatical and reads naturally"
    ),
    "clarity": Criterion(
        "How clear is the question?", "Clarity: whether the question is clear and specific, and has only one meaning"
    ),
    "conciseness": Criterion(
        "How concise is the question?", "Conciseness: whether the question has no more words than it needs"
    ),
    "relevance": Criterion(
        "How relevant is the question to the picture?",
        "Relevance: whether the question is about the picture, and asks for something that matters there",
        shows=("picture",),
    ),
    "consistency": Criterion(
        "How well does what the question says agree with the picture?",
        "Consistency: whether what the question says agrees with the picture, and nothing is made up",
        shows=("picture",),
    ),
    "answerability": Criterion(
        "How well can the question be answered from the picture?",
        "Answerability: whether the picture alone gives the question one definite answer",
        shows=("picture",),
    ),
    ANSWER_CONSISTENCY: Criterion(
        "How well does the given answer answer the question?",
        "Answer consistency: whether the given answer is a right answer to the question",
        shows=("picture", "answer"),
    ),
}
CRITERIA: Mapping[str, Criterion] = {**PAPER, **QGEVAL}
SETS: Mapping[str, tuple[str, ...]] = {"paper": (*PAPER,), "qgeval": (*QGEVAL,), "all": (*CRITERIA,)}
