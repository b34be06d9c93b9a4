"""Decoding: the options of text generation, their defaults and the combinations that are refused.

A generator names the class of its options; `Decoding` is the one of generators that write from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from .errors import DataError
from .settings import Config

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical_p")  # options that need do_sample
SHARED = ("length_penalty", "no_repeat_ngram_size", "min_new_tokens", "repetition_penalty")  # of any beam search
CANDIDATES = 20  # from which texts are chosen at least
MOST_TEXTS = 100  # that a query may ask for
WIDER = (1, 2, 4)  # factors of the number of candidates that are tried


class DecodingConfig(Config):
    """Base of the options by which a generator writes: the table [decoding] of a recipe. Every field needs a default.
    A class with the field `num_return_sequences` can write several texts per example."""

    @property
    def texts(self) -> int:
        """How many texts are written per example."""
        number: int = getattr(self, "num_return_sequences", 1)
        return number

    @property
    def samples(self) -> bool:
        """Whether texts are drawn at random, so that a seed changes them."""
        return bool(getattr(self, "do_sample", False))

    def for_texts(self, n: int) -> DecodingConfig:
        """Options for `n` different texts per example: these if they write n texts, else these with
        num_return_sequences = n. Raises DataError if there is no such field, and ValueError if n is not allowed."""
        if n == self.texts:
            return self
        if "num_return_sequences" not in type(self).model_fields:
            raise DataError(f"n = {n}: the generator writes one text per query")
        return type(self)(**{**dict(self), "num_return_sequences": n})


class Decoding(DecodingConfig):
    """Options of the search for texts, with the names of transformers' `generate`."""

    num_beams: int = Field(1, ge=1, le=1000, description="beams; 1 is greedy search, or sampling with do_sample")
    do_sample: bool = Field(False, description="sample tokens instead of taking the most probable ones")
    temperature: float = Field(1.0, ge=1e-6, le=1e6, description="divides the logits before sampling")
    top_k: int = Field(0, ge=0, description="sample among the k most probable tokens; 0 is off")
    top_p: float = Field(
        1.0, gt=0, le=1, description="sample among the most probable tokens with this total probability"
    )
    min_p: float | None = Field(None, ge=0, le=1, description="drop tokens below this share of the highest probability")
    typical_p: float = Field(1.0, gt=0, le=1, description="locally typical sampling")
    length_penalty: float = Field(
        1.0, ge=-10, le=10, description="exponent of the length, by which a beam's score is divided"
    )
    early_stopping: bool = Field(False, description="stop as soon as num_beams texts have ended")
    no_repeat_ngram_size: int = Field(0, ge=0, description="no n-gram of this size occurs twice; 0 is off")
    min_new_tokens: int = Field(0, ge=0, description="minimum number of tokens before a text may end; 0 is off")
    repetition_penalty: float = Field(1.0, ge=0.01, le=100, description="values over 1 discourage repeated tokens")
    num_return_sequences: int = Field(1, ge=1, le=1000, description="texts per example")
    candidates: int = Field(
        0,
        ge=0,
        le=1000,
        description="write so many texts by beam search, and choose num_return_sequences different ones by score and "
        "distance; 0 is off",
    )
    difference: float = Field(
        0.1, ge=0, le=1, description="with candidates: the weight of a text's distance; the score has the rest"
    )

    def model_post_init(self, context: Any) -> None:
        unused = dict.fromkeys(() if self.do_sample else SAMPLING, "has an effect only with do_sample = true")
        if self.candidates:
            beams = ("num_beams", "do_sample", "early_stopping")
            unused |= dict.fromkeys(beams, "not used with candidates, which has its own beams; remove it")
        else:
            unused["difference"] = "has an effect only with candidates"
        for name, why in unused.items():
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name}: {why}")
        if self.do_sample and self.num_beams > 1:
            raise ValueError("do_sample: samples without beams; set num_beams = 1, or remove do_sample")
        if self.num_return_sequences > (self.candidates or self.num_beams) and not self.do_sample:
            needed = "candidates of at least" if self.candidates else "do_sample = true, or num_beams of at least"
            raise ValueError(f"num_return_sequences: {self.num_return_sequences} texts need {needed} that number")

    def for_candidates(self) -> Iterator[Decoding]:
        """Searches for candidates: beams, and more beams if too few of them end in different texts."""
        shared = {name: getattr(self, name) for name in SHARED}
        for factor in WIDER:
            count = min(1000, factor * max(self.candidates or CANDIDATES, self.num_return_sequences))
            yield Decoding(**shared, num_beams=count, num_return_sequences=count)

    def for_texts(self, n: int) -> Decoding:
        """The `n` best different texts of many candidates, unless these options write n texts."""
        if n == self.texts:
            return self
        shared = {name: getattr(self, name) for name in (*SHARED, *(("difference",) if self.candidates else ()))}
        return Decoding(**shared, candidates=max(self.candidates, CANDIDATES, 4 * n), num_return_sequences=n)
