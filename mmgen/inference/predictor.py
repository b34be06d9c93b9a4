"""The predictor answers queries with one step: chooses the decoding, runs batches, remarks on texts; exports."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from pydantic import ValidationError

from ..data.collate import Collator
from ..data.part_checks import predict_with, write_texts
from ..data.unread_text import remarks_on_text
from ..decoding import DecodingConfig
from ..errors import DataError, RunError, UnavailableError
from ..evaluation.likelihood import fill, likelihoods, spelt
from ..examples import Example, Generation
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..parts import Picture
from ..recipe.messages import describe_mistake
from ..recipe.tables import GENERATOR, Recipe
from ..storage.model_files import EXTRACTORS
from ..storage.run_folder import RunFolder
from .answers import Answer
from .query import Query, queries_of, with_texts
from .query_names import StepNames
from .query_pictures import QueryFeatures
from .query_reader import Prepared, QueryReader, message, readable

log = logging.getLogger("mmgen")
Task = Callable[["Predictor", Sequence[Prepared]], list[Answer]]  # answers about the texts of queries


class Predictor:
    """A model with the weights of one step. Safe to call from several threads. Extractors are built for the first
    picture, and reused.

        run = mmgen.load("runs/first/default/seed-0", step="both")
        run.ask({"picture": "photo.jpg", "caption": "a dog on a beach"}, n=3).texts
        [answer.value for answer in run.ask_all([{"picture": "a.jpg"}, {"picture": "b.jpg"}])]

    model   the model; the predictor sets it to eval mode
    recipe  the recipe of the run
    step    the name of the step
    folder  the run folder, or None

    `prepare` (`QueryReader.prepare`) and `finish` are the two halves of an answer, for a service.
    """

    def __init__(self, model: Model, recipe: Recipe, step: str, folder: RunFolder | None = None) -> None:
        self.model, self.recipe, self.step, self.folder = model.eval(), recipe, step, folder
        self.where = str(folder.path) if folder else recipe.name  # the prefix of error messages
        self.chosen = ""  # why this step answers, if none was named
        self.other_steps: Callable[[Sequence[Query], bool], Predictor] | None = None  # see `_answering`
        about = recipe.only_about(step)  # such as "drawn scenes", if it knows nothing else
        self.limits = f"trained on {about}; expect no sensible answer about anything else" if about else ""
        self.names = StepNames(recipe, step)
        self.objective, self.kind = recipe.predicts(step) or (GENERATOR, "text")  # a step that only trains writes
        if self.kind == "text" and not model.has_generator:
            raise RunError(f"{self.where}: step '{step}' only trains and predicts nothing; choose another step")
        objectives = () if self.kind == "text" and not self.names.labels else (self.objective,)
        self.collate = Collator(model, tuple(self.names.inputs), objectives, predicting=True)
        saved = folder.path / EXTRACTORS if folder else None
        self.features = QueryFeatures(model, self.names.inputs, self.where, saved)
        doing, advice = ("writing", ADVICE_FEWER_TEXTS) if self.kind == "text" else ("predicting", ADVICE_SMALLER)
        self._retry = OomRetry(doing, advice, named=attrgetter("query.id"))
        self._of_targets = Collator(model, tuple(self.names.inputs), (GENERATOR,) if self.kind == "text" else ())
        self.prepare = QueryReader(self.names, self.features, self.collate, model.backbone).prepare

    def __repr__(self) -> str:
        chosen = f", {self.chosen}" if self.chosen else ""
        return f"<{self.where}: step '{self.step}'{chosen}, reads {self.names.reads}, gives {self.kind}>"

    def ask(
        self,
        query: Any,
        n: int | None = None,
        options: DecodingConfig | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> Answer:
        """Write texts about a picture, or about the other inputs of the step.

        query    a dict from names of inputs to values, in which "picture" is for the only input that takes pictures; a
                 picture alone; a `Query`; or an `Example` of a data set
        n        number of different texts, 1 to 100: the best of many candidates, or as the generator's class says.
                 Default: the texts that the recipe's [decoding] writes
        options  decoding options by name, {"num_beams": 4}, which override the recipe's; or all of them
        seed     of a decoding that samples: the same seed gives a query the same texts, alone and in a list; by
                 default drawn from torch's random numbers. `Answer.seed` has it

        A picture is a path, a key of the run's features, bytes, a PIL image, an array of pixels, features
        (`mmgen.parts.Record`), or a dict of a "picture" and its "boxes". A list or
        `All((a, b))` is several pictures for one input.

        Raises DataError for a query that cannot be read, RunError for a step that does not write texts, and
        UnavailableError if the extractor of the training features is not available for a picture."""
        return _single(self.ask_all([query], n, options, seed))

    def ask_all(
        self,
        queries: Iterable[Any],
        n: int | None = None,
        options: DecodingConfig | Mapping[str, Any] | None = None,
        seed: int | None = None,
        batch_size: int = 16,
    ) -> list[Answer]:
        """The answers to several queries, or to the examples of a split; see `ask`. A query that cannot be read gets an
        `Answer.error`."""
        numbered = queries_of(queries)
        predictor = self._answering(numbered, writes=True)
        predictor.check_writes()
        return list(predictor.answers(numbered, predictor.decoding(n, options), batch_size, seed))

    def predict(self, query: Any) -> Answer:
        """Predict a label, a choice, a region or boxes (a step that writes gives its texts): `Answer.value` and
        `Answer.score`. `query` and errors: see `ask`."""
        return _single(self.predict_all([query]))

    def predict_all(self, queries: Iterable[Any], batch_size: int = 16) -> list[Answer]:
        """The predictions for several queries; see `predict` and `ask_all`."""
        numbered = queries_of(queries)
        return list(self._answering(numbered, writes=False).answers(numbered, None, batch_size))

    def likelihood(self, query: Any, texts: str | Sequence[str]) -> Answer:
        """How probable each of these texts is, given the query: `Answer.texts` has a `mmgen.examples.Likelihood` for
        each, in their order. A prompt of the query is that of all texts. `query` and errors: see `ask`."""
        return _single(self.likelihood_all([query], [[texts] if isinstance(texts, str) else texts]))

    def likelihood_all(
        self, queries: Iterable[Any], texts: Iterable[Sequence[str]], batch_size: int = 16
    ) -> list[Answer]:
        """How probable the texts of each query are; see `likelihood` and `ask_all`."""
        return self._about_texts(queries, texts, Predictor.measure, batch_size)

    def fill(self, query: Any, text: str, top: int = 5) -> Answer:
        """Fill every [MASK] of a text with a word of the encoder's vocabulary: `Answer.texts` has the `top` most
        probable fillings, `Answer.blanks` the most probable words of each blank, given the best words before it. What
        else is read: `model.generator.blanks_read`. `query` and errors: see `ask`."""
        if top < 1:
            raise DataError(f"top must be at least 1, not {top}")
        return _single(self._about_texts([query], [[text]], partial(Predictor.fill_blanks, top=top)))

    def _about_texts(
        self, queries: Iterable[Any], texts: Iterable[Sequence[str]], task: Task, batch_size: int = 16
    ) -> list[Answer]:
        numbered = [with_texts(query, of) for query, of in zip(queries_of(queries), texts, strict=True)]
        predictor = self._answering(numbered, writes=True)
        predictor.check_writes()
        return list(predictor.answers(numbered, task, batch_size))

    def measure(self, group: Sequence[Prepared]) -> list[Answer]:
        """The likelihoods of the texts of queries, from one pass; with remarks on texts that are cut."""
        examples, backbone = [prepared.read[0].example for prepared in group], self.model.backbone
        batch = self._of_targets.batch([prepared.read for prepared in group]).to(self.model.device)
        answers, most = [], self.model.generator.max_tokens - 1
        for prepared, texts in zip(group, likelihoods(self.model, batch, examples), strict=True):
            cut = [
                remark for text in texts for remark in remarks_on_text(f"'{text.text:.40}'", text.text, most, backbone)
            ]
            measured = tuple(spelt(text, backbone) for text in texts)
            answers.append(replace(prepared.answer, texts=measured, remarks=(*prepared.answer.remarks, *cut)))
        return answers

    def fill_blanks(self, group: Sequence[Prepared], top: int) -> list[Answer]:
        """The text of each query with its blanks filled."""
        answers = []
        for prepared in group:
            batch = self.collate.batch([prepared.read]).to(self.model.device)
            texts, blanks = fill(self.model, batch, prepared.read[0].example.targets[0], top)
            answers.append(replace(prepared.answer, texts=tuple(texts), blanks=tuple(blanks)))
        return answers

    def _answering(self, queries: Sequence[Query | Example], writes: bool) -> Predictor:
        """The predictor that answers these queries: this one, or, if no step was named and this one does not read
        exactly their inputs, that of the best step that does. `writes`: whether it must write texts."""
        asked = [query for query in queries if isinstance(query, Query)]
        if self.other_steps is None or len(asked) < len(queries):
            return self
        with contextlib.suppress(RunError, DataError):  # no step does: this one says what is missing
            if (self.kind == "text" or not writes) and all(self.names.bind(query).exact for query in asked):
                return self
            return self.other_steps(asked, writes)
        return self

    def check_writes(self) -> None:
        """Raises RunError for a step that does not write texts."""
        if self.kind != "text":
            raise RunError(
                f"{self.where}: step '{self.step}' does not write texts, but predicts {self.kind}; use predict"
            )

    def answers(
        self,
        queries: Iterable[Query | Example],
        options: DecodingConfig | Task | None = None,
        batch_size: int = 16,
        seed: int | None = None,
    ) -> Iterator[Answer]:
        """Answer every query, in order; the answer to a query that cannot be read has an `Answer.error`. `options`: of
        decoding, or `Predictor.measure` or `fill_blanks` for queries with texts.
        `batch_size`: larger batches are faster in total, but delay the first answer. `seed`: see `ask`."""
        if self.limits:
            _warn_once(f"{self.where}: {self.limits}")
        options = options or self.recipe.decoding
        seed = self.seed_of(options, seed)
        remaining = iter(queries)
        while batch := list(itertools.islice(remaining, batch_size)):
            yield from self.finish(self.prepare(batch, [seed] * len(batch)), options)

    def seed_of(self, options: DecodingConfig | Task, seed: int | None) -> int | None:
        """The seed of a query: this one, or, if texts are sampled, one from torch's numbers. Raises DataError for
        a seed without effect."""
        samples = self.kind == "text" and isinstance(options, DecodingConfig) and options.samples
        if seed is not None and not samples:
            raise DataError("seed: has an effect only on a decoding that samples (do_sample = true); leave it out")
        return int(torch.randint(1 << 31, ())) if samples and seed is None else seed

    def finish(self, batch: Sequence[Prepared | Answer], options: DecodingConfig | Task | None = None) -> list[Answer]:
        """The answers to prepared queries, from one pass of the model over all that could be read. Options that sample
        need queries with seeds."""
        answers = {id(query): query for query in batch if isinstance(query, Answer)}
        read = [query for query in batch if isinstance(query, Prepared)]
        answer = partial(self._answers_of, options=options or self.recipe.decoding)
        for piece, results in self._retry.over(read, answer):
            answers |= zip(map(id, piece), results, strict=True)
        return [answers[id(query)] for query in batch]

    @torch.inference_mode()
    def _answers_of(self, group: Sequence[Prepared], options: DecodingConfig | Task) -> list[Answer]:
        """The answers to queries that have been read, with remarks on their texts."""
        reads = [prepared.read for prepared in group]
        try:
            if not isinstance(options, DecodingConfig):
                return options(self, group)
            with readable(" and ".join(reads[0][0].example.labels)):
                batch = self.collate.batch(reads).to(self.model.device)
            if self.kind != "text":
                predictions = predict_with(self.model, self.objective, batch)
                return [replace(query.answer, prediction=made) for query, made in zip(group, predictions, strict=True)]
            seeds = [prepared.draws for prepared in group if prepared.draws is not None]
            written = write_texts(self.model, batch, options, [read[0].example for read in reads], seeds)
        except DataError as error:
            if len(group) > 1:  # one query cannot be answered; answer each separately
                return [answer for prepared in group for answer in self._answers_of([prepared], options)]
            return [replace(group[0].answer, error=message(group[0].query, error), remarks=())]
        end = self.model.backbone.end_id
        return [
            replace(query.answer, texts=tuple(texts), remarks=(*query.answer.remarks, *_remarks_on(texts, end)))
            for query, texts in zip(group, written, strict=True)
        ]

    def decoding(
        self, n: int | None = None, options: DecodingConfig | Mapping[str, Any] | None = None
    ) -> DecodingConfig:
        """The decoding options of a call: the recipe's, or all `options`; these for `n` different texts
        (`DecodingConfig.for_texts`), or with some `options`, also `n`, by name. Raises DataError."""
        generator, chosen = self.recipe.generator, self.recipe.decoding
        if generator is None:  # the step predicts, and decoding has no effect
            return chosen
        try:
            if isinstance(options, DecodingConfig):
                chosen = options
            elif options:
                count = {} if n in (None, chosen.texts) else {"num_return_sequences": n}
                chosen = type(chosen)(**{**dict(chosen), **options, **count})
            chosen = chosen if n is None else chosen.for_texts(n)
        except ValidationError as error:
            place, text = describe_mistake(type(chosen), error.errors()[0])
            raise DataError(": ".join(filter(None, (".".join(place), text)))) from None
        if refused := generator.refuses(chosen):
            raise DataError("; ".join(f"{name}: {why}" for name, why in refused.items()))
        return chosen

    def save(self, folder: str | Path, **options: bool) -> Path:
        """Export the model into a folder that `mmgen.load` reads. `options`: see `mmgen.inference.export.export`."""
        from .export import export

        return export(self, folder, **options)

    def warm(self) -> None:
        """Build the extractors and extract features of a picture, so that the first query does not wait for that."""
        for name in self.features.embedders:
            with contextlib.suppress(UnavailableError):  # of a run that was trained on a file of features
                self.features.records(name, [Picture("warm", lambda: Image.new("RGB", (64, 64)))])


@functools.cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)


def _single(answers: Sequence[Answer]) -> Answer:
    """The answer to the only query. Raises DataError with its error."""
    (answer,) = answers
    if answer.error:
        raise DataError(answer.error)
    return answer


def _remarks_on(texts: Sequence[Generation], end_id: int) -> Iterator[str]:
    """Remarks on texts without an end, each with the text's number."""
    for number, text in enumerate(texts, 1):
        if text.tokens and text.tokens[-1] != end_id:
            which = f"text {number}" if len(texts) > 1 else "the text"
            yield f"{which} has no end: it is cut after {len(text.tokens)} tokens (generator.max_tokens)"
