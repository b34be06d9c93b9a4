"""Configs of metrics of texts: scores of captions as in COCO's evaluation, diversity, perplexity, CLIPScore, and
whether a model answers the questions; and the command `mmgen score`."""

import math
from typing import Annotated, ClassVar, Literal

from mmgen_vision.configs import ScoringConfig
from pydantic import Field

import mmgen
from mmgen.configs import PathOrName
from mmgen.examples import Scores
from mmgen.files import not_downloaded


class CaptionScores(mmgen.MetricConfig):
    """BLEU-1 to 4, ROUGE-L, METEOR 1.5 and CIDEr-D, times 100, by pycocoevalcap; one text against all its targets."""

    type: Literal["captioneval"] = "captioneval"
    tokenizer: Literal["auto", "java", "own"] = Field(
        "auto", description='"java": Stanford\'s; "own": ours, without Java; "auto": Stanford\'s if Java is installed'
    )
    meteor: bool = Field(
        True, description="also METEOR, which needs Java, up to 2 GB of memory and some seconds to start"
    )
    timeout: float = Field(120.0, gt=0, description="seconds to wait for Java, and 0.01 for each text")

    def of_sums(self, name, sums):
        from .captioneval import bleu
        from .meteor import meteor

        return {"METEOR": 100 * meteor(sums)} if name == "METEOR" else bleu(sums)

    def build(self):
        from .captioneval import CaptionMetric

        return CaptionMetric(self)


class Diversity(mmgen.MetricConfig):
    """Diversity of texts in percent: distinct-1 and -2, shares of unique texts and of the commonest, self-BLEU."""

    type: Literal["diversity"] = "diversity"
    lower_is_better = frozenset({"commonest", "self-BLEU"})
    judges_fit = False

    def build(self):
        from .diversity import DiversityMetric

        return DiversityMetric()


class Likelihood(ScoringConfig):
    """How probable the references are: perplexity by token, ends included. It reads no generated text."""

    type: Literal["likelihood"] = "likelihood"
    judges = frozenset({"likelihoods"})
    lower_is_better = frozenset({"perplexity"})
    judges_fit = False

    def of_sums(self, name, sums):
        """Of log-probabilities and numbers of tokens (..., 2) that are summed over texts."""
        return {name: math.e ** -(sums[..., 0] / sums[..., 1])}

    def score(self, likelihoods, examples):
        sums = [[sum(t.log_probability for t in texts), sum(len(t.tokens) for t in texts)] for texts in likelihoods]
        total, tokens = (sum(column) for column in zip(*sums, strict=True))
        kinds = {text.kind for texts in likelihoods for text in texts} - {"exact"}
        notes = tuple(f"perplexity: {kind}" for kind in sorted(kinds))
        return Scores({"perplexity": math.exp(-total / tokens)}, {}, notes, {"perplexity": sums})


class ClipScore(mmgen.MetricConfig):
    """CLIPScore, 2.5 max(cos, 0) of the embeddings of text and picture, times 100. It needs no references."""

    type: Literal["clip_score"] = "clip_score"
    needs_pictures: ClassVar[bool] = True
    needs_device: ClassVar[bool] = True

    model: Annotated[str, PathOrName()] = Field(
        "openai/clip-vit-base-patch32", description="folder or hub name of a CLIP model of transformers"
    )
    prompt: str = Field("A photo depicts ", description="stands before every text; the paper's")
    batch_size: int = Field(32, ge=1, description="pictures and texts at a time")

    def missing_here(self):
        return {"model": not_downloaded(self.model)}

    def build(self):
        from .clip_score import ClipScoreMetric

        return ClipScoreMetric(self)


class Answerable(mmgen.MetricConfig):
    """A round trip: an answerer reads the picture and the generated question. It needs no references.

    The answerer is a step of a run, or an export, that reads a question and a picture: a step with `answer_classes`, or
    one that writes answers. docs/guides/scoring.md defines the columns.
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
        from .answerable import AnswerableMetric

        return AnswerableMetric(self)


class Score(mmgen.CommandConfig):
    """Score any file of predictions."""

    type: Literal["score"] = "score"
    group: ClassVar[str] = "Evaluate"

    def build(self):
        from .scoring.command import score

        return score


@mmgen.hookimpl
def register_commands():
    return [Score]


@mmgen.hookimpl
def register_metrics():
    return [CaptionScores, Diversity, Likelihood, ClipScore, Answerable]
