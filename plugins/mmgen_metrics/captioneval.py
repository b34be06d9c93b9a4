"""The caption metrics: tokenisation, references by image, pycocoevalcap's scorers, METEOR, and the signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from mmgen.errors import DataError, UnavailableError
from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric

from . import CaptionScores, java, ptb
from .meteor import meteor, statistics, summands

BLEU = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4")
NO_CIDER = "CIDEr: unavailable, its document frequencies come from the references and one image gives none"
VARIANTS = {"METEOR": "METEOR 1.5", "CIDEr": "CIDEr-D"}
NAMES = (*BLEU, "ROUGE-L", "METEOR", "CIDEr")
OF_ONE_TEXT = ("ROUGE-L", "METEOR", "CIDEr", "BLEU-4")  # BLEU-4 last: of most single texts it is 0


class CaptionMetric(Metric):
    """BLEU-1..4, ROUGE-L, METEOR and CIDEr, times 100: one text per example against all its targets.

    BLEU's reference length is the closest one, of two equally close the shorter; sentence BLEU-4 is not smoothed.
    CIDEr is CIDEr-D, with document frequencies from these references, so a single image has no CIDEr."""

    def __init__(self, config: CaptionScores):
        self.config = config

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        """Score one generation per example. Raises DataError for an example without references, UnavailableError if
        Java is required and fails."""
        if not examples or [generation.id for generation in generations] != [example.id for example in examples]:
            raise DataError("captioneval: give one text per example, in the order of the examples")
        texts = [generation.text for generation in generations]
        texts += [text for example in examples for text in example.targets]
        words, tokeniser = self._tokenise(texts)
        lines = iter([" ".join(line) for line in words])
        hypotheses = [next(lines) for _ in generations]
        references, notes = _drop_wordless(examples, [[next(lines) for _ in example.targets] for example in examples])
        values, per_example, sums = _score_without_java(hypotheses, references)
        if len(examples) == 1:
            values["CIDEr"] = per_example["CIDEr"] = None
            notes.append(NO_CIDER)
        if self.config.meteor:
            values["METEOR"] = None
            try:
                counts = summands(statistics(hypotheses, references, self.config.timeout))
                values["METEOR"] = 100 * float(meteor(counts.sum(0)))
                per_example["METEOR"], sums["METEOR"] = (100 * meteor(counts)).tolist(), counts.tolist()
            except UnavailableError as error:
                notes.append(f"METEOR: unavailable, {error}")
        group = (
            "question" if any("group" in example.facts for example in examples) else "image"
        )  # several examples may share an image
        return Scores(
            {name: values[name] for name in NAMES if name in values},
            {name: scores for name in OF_ONE_TEXT if (scores := per_example.get(name))},
            (_signature(tokeniser, references, group, values), *notes),
            sums,
        )

    def _tokenise(self, texts: Sequence[str]) -> tuple[list[list[str]], str]:
        """Words of every text, and the name of the tokeniser."""
        lines, reason = [java.one_line(text) for text in texts], ""
        if self.config.tokenizer != "own":
            try:
                return java.tokenise_all(lines, self.config.timeout), "Java's"
            except UnavailableError as error:
                if self.config.tokenizer == "java":
                    raise UnavailableError(f'captioneval: tokenizer = "java": {error}; set tokenizer = "own"') from None
                reason = f" ({error})"
        return [ptb.tokenise(line) for line in lines], f"our own{reason}"


def bleu(counts: np.ndarray) -> dict[str, np.ndarray]:
    """BLEU-1 to 4, times 100, of counts (..., 9) that are summed over texts: right n-grams, n-grams, and the length of
    the closest reference; as in pycocoevalcap."""
    right, written, length = counts[..., 0:4], counts[..., 4:8], counts[..., 8:]
    precisions = (right + 1e-15) / (written + 1e-9)
    means = np.cumprod(precisions, -1) ** (1 / np.arange(1, 5))
    ratio = (written[..., :1] + 1e-15) / (length + 1e-9)  # texts as long as they have words
    scores = 100 * means * np.exp(np.minimum(0, 1 - 1 / ratio))
    return dict(zip(BLEU, np.moveaxis(scores, -1, 0), strict=True))


def _signature(tokeniser: str, references: list[list[str]], group: str, values: Mapping[str, float | None]) -> str:
    mean = sum(map(len, references)) / len(references)
    return ", ".join(
        [
            f"PTB tokeniser: {tokeniser}",
            f"references grouped per {group} ({mean:.1f} {'an' if group == 'image' else 'a'} {group})",
            *(variant for name, variant in VARIANTS.items() if values.get(name) is not None),
            f"pycocoevalcap {version('pycocoevalcap')}",
        ]
    )


def _drop_wordless(examples: Sequence[Example], references: list[list[str]]) -> tuple[list[list[str]], list[str]]:
    """References with at least one word, and a note on the number of dropped ones, which no text could match."""
    with_words = [[text for text in texts if text] for texts in references]
    for example, texts in zip(examples, with_words, strict=True):
        if not texts:
            raise DataError(
                f"captioneval: example {example.id!r} has no reference with a word; add targets or leave the example "
                "out"
            )
    left_out = sum(map(len, references)) - sum(map(len, with_words))
    return with_words, [f"references without a word left out: {left_out}"] if left_out else []


def _score_without_java(
    hypotheses: list[str], references: list[list[str]]
) -> tuple[dict[str, float | None], dict[str, list[float] | None], dict[str, list[list[float]]]]:
    """The metrics that need no Java, times 100: over all examples and per example; and BLEU's counts."""
    hypotheses_by_id = dict(enumerate([text] for text in hypotheses))
    references_by_id = dict(enumerate(references))
    counted = BleuScorer(n=4)
    for hypothesis, texts in zip(hypotheses, references, strict=True):
        counted += (hypothesis, texts)
    bleu, bleu_each = counted.compute_score(option="closest")
    rouge, rouge_each = Rouge().compute_score(references_by_id, hypotheses_by_id)
    cider, cider_each = Cider().compute_score(references_by_id, hypotheses_by_id)
    values = {**dict(zip(BLEU, bleu, strict=True)), "ROUGE-L": rouge, "CIDEr": cider}
    per_example = {"BLEU-4": bleu_each[3], "ROUGE-L": rouge_each, "CIDEr": cider_each}
    counts = [
        [*text["correct"], *text["guess"], min((abs(length - text["testlen"]), length) for length in text["reflen"])[1]]
        for text in counted.ctest
    ]
    return (
        {name: 100 * float(value) for name, value in values.items()},
        {name: [100 * float(score) for score in scores] for name, scores in per_example.items()},
        {"BLEU": counts},
    )
