"""The caption metrics put together: words, references by image, pycocoevalcap's scorers, METEOR, and the signature."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import numpy as np
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from mmgen.errors import DataError, UnavailableError
from mmgen.parts import Metric
from mmgen.tensors import Example, Generation, Scores

from . import CaptionScores, java, ptb
from .meteor import Program, meteor, statistics

BLEU = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4")
NO_CIDER = "CIDEr: unavailable, its document frequencies come from the references and one image gives none"
VARIANTS = {"METEOR": "METEOR 1.5", "CIDEr": "CIDEr-D"}
NAMES = (*BLEU, "ROUGE-L", "METEOR", "CIDEr")


class CaptionMetric(Metric):
    """BLEU-1..4, ROUGE-L, METEOR and CIDEr, times 100; each example's single text against all its targets.

    BLEU's reference length is the closest one, of two equally close the shorter; sentence BLEU-4 is not smoothed.
    CIDEr is CIDEr-D, with document frequencies from these references: with one image there are none, and no CIDEr.
    What Java has said of a text is kept: scoring some of the same texts again (for an interval) does not start it
    again."""

    def __init__(self, config: CaptionScores):
        self.config = config
        self.words: dict[str, list[str]] = {}
        self.how = ""  # who has found the words
        self.segments: dict[tuple[str, ...], np.ndarray] = {}  # a text and its references -> METEOR's statistics
        self.no_meteor = ""
        self.program = Program(config.patience)
        weakref.finalize(self, self.program.close)

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        """Raises DataError for an example without references, UnavailableError where Java is asked for and fails."""
        _check(generations, examples)
        texts = [generation.text for generation in generations]
        texts += [text for example in examples for text in example.targets]
        words, how = self._tokenise(texts)
        lines = iter([" ".join(line) for line in words])
        hypotheses = [next(lines) for _ in generations]
        references, notes = _with_words(examples, [[next(lines) for _ in example.targets] for example in examples])
        values, each = _pure(hypotheses, references)
        if len(examples) == 1:
            values["CIDEr"] = each["CIDEr"] = None
            notes.append(NO_CIDER)
        if self.config.meteor:
            values["METEOR"], each["METEOR"], why = self._meteor(hypotheses, references)
            notes += why
        what = "question" if any("group" in example.facts for example in examples) else "image"  # several of one image
        return Scores(
            {name: values[name] for name in NAMES if name in values},
            {name: found for name in NAMES if (found := each.get(name))},
            (_signature(how, references, what, values), *notes),
        )

    def _tokenise(self, texts: list[str]) -> tuple[list[list[str]], str]:
        """Words of every text, and who found them: the same for all texts that this metric is ever given."""
        new = list(dict.fromkeys(text for text in texts if text not in self.words))
        if new and self.how in ("", "Java's") and self.config.tokenizer != "own":
            try:
                self.words.update(
                    zip(
                        new, java.tokenise_all([java.one_line(text) for text in new], self.config.patience), strict=True
                    )
                )
                self.how, new = "Java's", []
            except UnavailableError as error:
                if self.config.tokenizer == "java":
                    raise UnavailableError(f'captioneval: tokenizer = "java": {error}; set tokenizer = "own"') from None
                self.how = f"our own ({error})"
                self.words, new = {}, list(dict.fromkeys(texts))  # never some by one and some by the other
        self.words.update({text: ptb.tokenise(java.one_line(text)) for text in new})
        return [self.words[text] for text in texts], self.how or "our own"

    def _meteor(
        self, hypotheses: list[str], references: list[list[str]]
    ) -> tuple[float | None, list[float] | None, list[str]]:
        """The value, each example's, and why there is none."""
        keys = [(hypothesis, *texts) for hypothesis, texts in zip(hypotheses, references, strict=True)]
        new = list(dict.fromkeys(key for key in keys if key not in self.segments))
        if new and not self.no_meteor:
            try:
                told = statistics([key[0] for key in new], [key[1:] for key in new], self.program)
                self.segments.update(zip(new, told, strict=True))
            except UnavailableError as error:
                self.no_meteor = f"METEOR: unavailable, {error}"
        if self.no_meteor:
            return None, None, [self.no_meteor]
        together, each = meteor(np.stack([self.segments[key] for key in keys]))
        return 100 * together, [100 * score for score in each], []


def _signature(how: str, references: list[list[str]], what: str, values: Mapping[str, float | None]) -> str:
    mean = sum(map(len, references)) / len(references)
    return ", ".join(
        [
            f"PTB tokeniser: {how}",
            f"references grouped per {what} ({mean:.1f} {'an' if what == 'image' else 'a'} {what})",
            *(variant for name, variant in VARIANTS.items() if values.get(name) is not None),
            f"pycocoevalcap {version('pycocoevalcap')}",
        ]
    )


def _with_words(examples: Sequence[Example], references: list[list[str]]) -> tuple[list[list[str]], list[str]]:
    """References that hold a word, and how many do not: nothing can be like an empty text."""
    kept = [[text for text in texts if text] for texts in references]
    for example, texts in zip(examples, kept, strict=True):
        if not texts:
            raise DataError(
                f"captioneval: example {example.id!r} has no reference with a word in it; add targets or leave it out"
            )
    left_out = sum(map(len, references)) - sum(map(len, kept))
    return kept, [f"references without a word left out: {left_out}"] if left_out else []


def _check(generations: Sequence[Generation], examples: Sequence[Example]) -> None:
    if not examples:
        raise DataError("captioneval: there are no examples to score")
    if len(generations) != len(examples):
        raise DataError(
            f"captioneval: {len(generations)} texts for {len(examples)} examples; give one each, in the same order"
        )
    for generation, example in zip(generations, examples, strict=True):
        if generation.id != example.id:
            raise DataError(
                f"captioneval: a text for {generation.id!r} stands where example {example.id!r} is; give them in order"
            )


def _pure(
    hypotheses: list[str], references: list[list[str]]
) -> tuple[dict[str, float | None], dict[str, list[float] | None]]:
    """What needs no Java, over all examples and for each, times 100."""
    found = dict(enumerate([text] for text in hypotheses))
    wanted = dict(enumerate(references))
    bleu, bleu_each = Bleu(4).compute_score(wanted, found, verbose=0)
    rouge, rouge_each = Rouge().compute_score(wanted, found)
    cider, cider_each = Cider().compute_score(wanted, found)
    values = {**dict(zip(BLEU, bleu, strict=True)), "ROUGE-L": rouge, "CIDEr": cider}
    each = {"BLEU-4": bleu_each[3], "ROUGE-L": rouge_each, "CIDEr": cider_each}
    return (
        {name: 100 * float(value) for name, value in values.items()},
        {name: [100 * float(score) for score in scores] for name, scores in each.items()},
    )
