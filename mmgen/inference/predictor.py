"""The predictor answers queries with one step: prepares examples, runs batches, words errors; exports and pushes."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, overload

import torch
from PIL import Image
from pydantic import ValidationError

from ..data.collate import Collator, ReadExample
from ..data.part_checks import predict_with, write_texts
from ..data.unread_text import remarks
from ..decoding import MOST_TEXTS, DecodingConfig
from ..errors import DataError, MissingInput, MissingLabel, RunError
from ..evaluation.answers import generate
from ..evaluation.collapse import repeats_itself, unfinished
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..parts import Picture
from ..progress import html_table
from ..recipe.messages import describe_mistake
from ..recipe.tables import GENERATOR, Recipe
from ..storage.run_folder import RunFolder
from ..tensors import All, Example, Generation, Prediction, ResolvedExample
from .answers import Answer
from .draws import choose_seed, draws_of
from .query import Query, from_json, is_many, queries_of
from .query_features import QueryFeatures
from .query_names import Bound, StepNames
from .query_pictures import as_file, as_picture, frames_remarks

log = logging.getLogger("mmgen")
UNREADABLE = (TypeError, ValueError, AttributeError, LookupError)  # readers raise these for values of a wrong type


@dataclass(frozen=True)
class Prepared:
    """A query before its answer is computed. `read`: the example with its inputs read; None if `answer` has an
    error."""

    answer: Answer
    read: ReadExample | None = None


class Predictor:
    """A model with the weights of one step. Safe to call from several threads. Extractors are built for the first
    picture, and reused.

        run = load_run("runs/first/default/seed-0", step="both")
        run.ask("photo.jpg", caption="a dog on a beach", n=3).texts
        [answer.value for answer in run.ask(["a.jpg", "b.jpg"], caption="a dog")]

    model   the model; the predictor sets it to eval mode
    recipe  the recipe of the run
    step    the name of the step
    folder  the run folder, or None
    where   the prefix of error messages; default: the run folder, or the name of the recipe
    extractors  input -> the folder of its saved extractor; extractors of other inputs are built
    """

    def __init__(
        self,
        model: Model,
        recipe: Recipe,
        step: str,
        folder: RunFolder | None = None,
        *,
        where: str = "",
        extractors: Mapping[str, Path] = MappingProxyType({}),
    ) -> None:
        self.model, self.recipe, self.step, self.folder = model.eval(), recipe, step, folder
        self.where = where or (str(folder.path) if folder else recipe.name)
        self.chosen = ""  # why this step answers, if none was named
        self.other_steps: Callable[[Sequence[Query], bool], Predictor] | None = None  # see `_answering`
        self.trained_on = recipe.only_about(step)  # such as "drawn scenes", if it knows nothing else
        self._said_limits = False
        self.names = StepNames(recipe, step)
        self.objective, self.kind = recipe.predicts(step) or (GENERATOR, "text")  # a step that only trains writes
        if self.kind == "text" and not model.has_generator:
            raise RunError(f"{self.where}: step '{step}' only trains and predicts nothing; choose another step")
        objectives = () if self.kind == "text" and not self.names.labels else (self.objective,)
        self._collate = Collator(model, tuple(self.names.inputs), objectives, predicting=True)
        self.features = QueryFeatures(model, self.names.inputs, self.where, extractors)

    def __repr__(self) -> str:
        chosen = f", {self.chosen}" if self.chosen else ""
        return f"<{self.where}: step '{self.step}'{chosen}, reads {self.names.reads}, gives {self.kind}>"

    @property
    def limits(self) -> str:
        """A remark on what the model can be asked about; empty if its data do not limit that."""
        trained_on = self.trained_on
        return f"trained on {trained_on}; expect no sensible answer about anything else" if trained_on else ""

    def _repr_html_(self) -> str:
        """What the model reads and gives, as a table for a notebook."""
        weights = sum(parameter.numel() for parameter in self.model.parameters())
        row = [self.step, self.names.reads, self.kind, f"{weights:,}", str(self.model.device)]
        notes = [f"step '{self.step}' answers, {self.chosen}"] if self.chosen else []
        notes += [self.limits] if self.limits else []
        return html_table([["step", "reads", "gives", "weights", "device"], row], notes, self.where)

    @overload
    def ask(
        self,
        query: list[Any] | Sequence[Example],
        /,
        *,
        n: int | None = None,
        options: DecodingConfig | None = None,
        seed: int | None = None,
        batch_size: int = 16,
        **inputs: Any,
    ) -> list[Answer]: ...

    @overload
    def ask(
        self,
        query: Any = None,
        /,
        *,
        n: int | None = None,
        options: DecodingConfig | None = None,
        seed: int | None = None,
        batch_size: int = 16,
        **inputs: Any,
    ) -> Answer: ...

    def ask(
        self,
        query: Any = None,
        /,
        *,
        n: int | None = None,
        options: DecodingConfig | None = None,
        seed: int | None = None,
        batch_size: int = 16,
        **inputs: Any,
    ) -> Answer | list[Answer]:
        """Write `n` different texts about a picture, or about the other inputs of the step. A list gives a list of
        answers.

        query       a picture for the only input that takes pictures, a dict from input names to values, a `Query`, or
                    an `Example` of a data set. A list of these, or the examples of a split, are several queries
        n           number of different texts, 1 to 100, by default 1; by a search that the generator supports
        options     decoding options to use instead, with their own num_return_sequences; without n and options by name
        seed        of a decoding that samples: the same seed gives a query the same texts, alone and in a list; by
                    default drawn from torch's random numbers. `Answer.seed` has it
        batch_size  number of queries in a batch
        inputs      values by input name, for every query that does not give its own; also decoding options of the
                    generator by name, which override the recipe's: steps=4, temperature=0.7

        A picture is a path, a key of the run's features, bytes, a file opened for reading, a PIL image, an array
        (`mmgen.features.pixels.from_array`), or features (`mmgen.parts.Record`). Several pictures for one input are
        `All((a, b))`.

        Raises DataError for a query that cannot be read; in a list, such a query gets an `Answer.error` instead. Raises
        RunError for a step that does not write texts, and UnavailableError if the extractor of the training features is
        not available for a picture."""
        reads = {*self.names.known, *self.recipe.inputs}
        chosen = {
            name: inputs[name]
            for name in inputs
            if name in type(self.recipe.decoding).model_fields and name not in reads
        }
        values = {name: value for name, value in inputs.items() if name not in chosen}
        queries = queries_of(query, values)
        predictor = self._answering(queries, writes=True)
        predictor._check_writes()
        if options is None:
            options = self.decoding(n, chosen)
        elif beside := [*(["n"] if n is not None else []), *chosen]:
            raise DataError(f"options replaces {' and '.join(beside)}; give one or the other")
        else:
            options = self._check_options(options)
        answers = predictor._answer_call(queries, values, options, batch_size, choose_seed(options, seed))
        return answers if is_many(query) else _single(answers)

    @overload
    def predict(
        self, query: list[Any] | Sequence[Example], /, *, batch_size: int = 16, **inputs: Any
    ) -> list[Answer]: ...

    @overload
    def predict(self, query: Any = None, /, *, batch_size: int = 16, **inputs: Any) -> Answer: ...

    def predict(self, query: Any = None, /, *, batch_size: int = 16, **inputs: Any) -> Answer | list[Answer]:
        """Predict a label, a choice, a region or boxes (a step that writes gives one text): `Answer.value` and
        `Answer.score`. Parameters and errors are those of `ask`."""
        queries = queries_of(query, inputs)
        answers = self._answering(queries, writes=False)._answer_call(queries, inputs, None, batch_size)
        return answers if is_many(query) else _single(answers)

    def _answering(self, queries: Sequence[Query | Example], writes: bool) -> Predictor:
        """The predictor that answers these queries: this one, or, if no step was named and this one does not read
        exactly their inputs, that of the best step that does. `writes`: whether it must write texts."""
        asked = [query for query in queries if isinstance(query, Query)]
        if self.other_steps is None or len(asked) < len(queries):
            return self
        with contextlib.suppress(DataError):  # an unknown name
            if (self.kind == "text" or not writes) and all(map(self.names.reads_exactly, asked)):
                return self
            for kind in (True,) if writes else (False, True):
                with contextlib.suppress(RunError):
                    return self.other_steps(asked, kind)
        return self

    def _check_writes(self) -> None:
        if self.kind != "text":
            raise RunError(
                f"{self.where}: step '{self.step}' does not write texts, but predicts {self.kind}; use predict"
            )

    def _answer_call(
        self,
        queries: Sequence[Query | Example],
        inputs: Mapping[str, Any],
        options: DecodingConfig | None,
        batch_size: int,
        seed: int | None = None,
    ) -> list[Answer]:
        if self.limits and not self._said_limits:
            log.warning("%s: %s", self.where, self.limits)
            self._said_limits = True
        for name in self.names.pictures:
            if isinstance(inputs.get(name), list | tuple):
                raise DataError(
                    f"{name}: a list of pictures is ambiguous; write {name}=All((a, b)) for one query about both "
                    "pictures (mmgen.tensors.All), or pass a list of queries as the first argument"
                )
        return list(self.answers(queries, options, batch_size, seed))

    def answers(
        self,
        queries: Iterable[Query | Example],
        options: DecodingConfig | None = None,
        batch_size: int = 16,
        seed: int | None = None,
    ) -> Iterator[Answer]:
        """Answer every query, in order; the answer to a query that cannot be read has an `Answer.error`.
        `batch_size`: larger batches are faster in total, but delay the first answer. `seed`: see `ask`."""
        if not isinstance(batch_size, int) or batch_size < 1:
            raise DataError(f"batch_size must be a positive integer, not {batch_size!r:.60}")
        retry, options = self.retry(), options or self.decoding()
        seed = choose_seed(options, seed) if self.kind == "text" else None
        remaining = iter(queries)
        while batch := [self.prepare(query) for query in itertools.islice(remaining, batch_size)]:
            yield from self.finish(batch, options, retry, seed)

    def retry(self) -> OomRetry:
        """For `finish`: halves batches that do not fit into memory."""
        writes = self.kind == "text"
        return OomRetry("writing", ADVICE_FEWER_TEXTS) if writes else OomRetry("predicting", ADVICE_SMALLER)

    def finish(
        self,
        batch: Sequence[Prepared],
        options: DecodingConfig | None = None,
        retry: OomRetry | None = None,
        seed: int | None = None,
    ) -> list[Answer]:
        """The answers to prepared queries, from one pass of the model over all that could be read; with a `seed`, which
        a decoding that samples needs, from a pass for each."""
        chosen, retry = options or self.decoding(), retry or self.retry()
        readable = [query for query in batch if query.read is not None]
        outcomes: list[list[Generation] | Prediction | str] = []
        for group in [readable] if seed is None else [[query] for query in readable]:
            reads = [query.read for query in group if query.read is not None]
            one = None if seed is None else draws_of(seed, reads[0].rows[0].example, group[0].answer.pictures)
            with one or contextlib.nullcontext():
                for _, results in retry.over(reads, lambda piece: self._compute_outcomes(piece, chosen)):
                    outcomes += results
        answers = iter(outcomes)
        return [query.answer if query.read is None else self._answered(query, next(answers), seed) for query in batch]

    def _answered(self, query: Prepared, outcome: list[Generation] | Prediction | str, seed: int | None) -> Answer:
        """The answer to a query with its texts, prediction or error, and with remarks on the texts."""
        if isinstance(outcome, str):
            return replace(query.answer, error=outcome, remarks=())
        if isinstance(outcome, Prediction):
            return replace(query.answer, prediction=outcome)
        remarks = (*query.answer.remarks, *_remarks_on(outcome, self.model.backbone.end_id))
        return replace(query.answer, texts=tuple(outcome), remarks=remarks, seed=seed)

    def slots(self, prepared: Prepared) -> float:
        """About how many slots the input of a query takes; 0 for one that cannot be read."""
        read = prepared.read
        return self._collate.slots([read.rows[0].example])[0] if read and read.rows else 0

    def prepare(self, query: Query | Example) -> Prepared:
        """Resolve a query to an example, and read its inputs once."""
        bound: Bound | None = None
        shown: list[Picture] = []
        try:
            if isinstance(query, Query):
                bound = self.names.bind_exactly(query)
                example: Example = self._example_of(query, bound, shown)
            else:
                Query(query.id, {**query.inputs, **query.labels}).check()
                example = query
            read = self._collate.read(example)
        except DataError as error:
            return Prepared(Answer(query.id, error=self._error_message(error, bound)))
        except UNREADABLE as error:
            return Prepared(Answer(query.id, error=_unreadable_message(self.names.reads, error)))
        query_remarks = [
            remark
            for row in read.rows
            for name in row.items
            for remark in remarks(name, self.names.inputs[name], self.model.backbone, row.example.seen_by(name))
        ]
        query_remarks += [remark for row in read.rows for remark in self.features.remarks(row.example)]
        query_remarks += frames_remarks(shown)
        choices = tuple(
            value
            for row in (read.rows if self.kind == "choice" else ())  # each choice is a row
            for field, value in row.example.inputs.items()
            if field in self.names.filled and isinstance(value, str)
        )
        answer = Answer(query.id, remarks=tuple(dict.fromkeys(query_remarks)), choices=choices, pictures=tuple(shown))
        return Prepared(answer, read)

    def extracted(self, queries: Sequence[Query]) -> AbstractContextManager[None]:
        """Extract the features of these queries' pictures together; `prepare` uses them until the end of the block."""
        values = []
        for query in queries:
            with contextlib.suppress(DataError):  # `prepare` reports it
                for name, fields in self.names.bind(query).inputs.items():
                    for value in fields.values() if name in self.features else ():
                        elements = value.values if isinstance(value, All) else value
                        several = isinstance(elements, list | tuple)
                        values += [(name, element, query) for element in (elements if several else [value])]
        return self.features.extracted(values)

    @torch.inference_mode()
    def _compute_outcomes(
        self, examples: Sequence[ReadExample], options: DecodingConfig
    ) -> Sequence[list[Generation] | Prediction | str]:
        """Texts, a prediction or an error message for each example."""
        try:
            batch = self._collate.batch(examples)
        except (DataError, *UNREADABLE) as error:
            if len(examples) > 1:  # one example cannot be read; answer each separately
                return [outcome for example in examples for outcome in self._compute_outcomes([example], options)]
            labels = " and ".join(examples[0].rows[0].example.labels)
            return [self._error_message(error) if isinstance(error, DataError) else _unreadable_message(labels, error)]
        batch = batch.to(self.model.device)
        if self.kind == "text":
            try:
                return write_texts(self.model, batch, options, [example.rows[0].example for example in examples])
            except DataError as error:
                if len(examples) == 1:
                    return [str(error)]
                return [outcome for example in examples for outcome in self._compute_outcomes([example], options)]
        return predict_with(self.model, self.objective, batch)

    def _error_message(self, error: DataError, bound: Bound | None = None) -> str:
        """The error message of an answer. It shows a value that must be a text, and says how to give a missing
        label."""
        if isinstance(error, MissingLabel) and error.label in self.names.labels:
            name = error.label
            return f"{error}; {self.names.advice.format(name=name)}"
        values = [
            (name, field, value)
            for name, fields in (bound.inputs if bound else {}).items()
            if self.names.takes[name] not in ("picture", "file")
            for field, value in fields.items()
            if not isinstance(value, str)
        ]
        for name, field, value in values:
            if isinstance(error, MissingInput) and error.field == field:
                return f"'{name}' must be a string, not {json.dumps(value, default=str)[:40]}"
        return str(error)

    def _example_of(self, query: Query, bound: Bound, shown: list[Picture]) -> ResolvedExample:
        """The example of a query, for the readers. Adds the query's pictures to `shown`. Raises DataError."""
        by_input = {
            name: {field: self._value_for_reader(name, field, value, query, shown) for field, value in fields.items()}
            for name, fields in bound.inputs.items()
        }
        inputs = {field: value for fields in reversed(by_input.values()) for field, value in fields.items()}
        overrides = {
            name: {field: value for field, value in fields.items() if value is not inputs[field]}
            for name, fields in by_input.items()
        }
        labels = {name: self._parse_json(name, value) for name, value in bound.labels.items()}
        for name, value in bound.optional.items():
            try:
                self._add_optional(name, from_json(value), inputs, labels)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}: {error}") from None
        overrides = {name: fields for name, fields in overrides.items() if fields}
        return ResolvedExample(query.id, inputs, labels=labels, overrides=overrides)

    def _value_for_reader(self, name: str, field: str, value: Any, query: Query, shown: list[Picture]) -> Any:
        """The value of a field for the reader of an input. Raises DataError, for a string of a stranger above all where
        a picture or a file is expected."""
        if name in self.features:
            return self.features.of(name, value, query, shown)
        if (takes := self.names.inputs[name].takes) not in ("picture", "file"):
            return self._parse_json(field, value)
        if isinstance(value, All | list | tuple):
            elements = value.values if isinstance(value, All) else value
            return All(tuple(self._value_for_reader(name, field, element, query, shown) for element in elements))
        try:
            read = (as_picture if takes == "picture" else as_file)(value, query.id, query.folder)
        except (ValueError, TypeError) as error:
            raise DataError(f"{name}: {error}") from None
        if read is None and query.folder is None:
            raise DataError(f"{name}: expected a {takes}, but got {str(value)[:40]!r}")
        shown += [read] if isinstance(read, Picture) else []
        return value if read is None else read

    def _add_optional(self, name: str, value: Any, inputs: dict[str, Any], labels: dict[str, Any]) -> None:
        """Add an optional field to the inputs, or, if each row has its own value, to the labels. Raises ValueError."""
        config = self.names.optional[name]
        if name not in self.names.filled:
            inputs[name] = config.from_json(name, value)
            return
        if not isinstance(value, list):
            raise ValueError(f"{str(value)[:60]} is not a list; give a list with one value per row")
        rows = [config.from_json(name, row) for row in value]
        labels[name] = [row.values if isinstance(row, All) else row for row in rows]

    def _parse_json(self, name: str, value: Any) -> Any:
        """The value; for labels and fields with a value per row, a JSON string is parsed."""
        if name not in {*self.names.filled, *self.names.labels}:
            return value
        try:
            return from_json(value)
        except (ValueError, RecursionError):  # a text that starts like JSON
            return value

    def decoding(self, n: int | None = None, chosen: Mapping[str, Any] | None = None) -> DecodingConfig:
        """Decoding options for n different texts, 1 by default: the first that the generator supports of those that its
        class lists (`DecodingConfig.for_texts`). `chosen`: options by name, over those of the recipe. Raises
        DataError."""
        if n is not None:
            _check_count(n)
            if "num_return_sequences" in (chosen or ()):
                raise DataError("n and num_return_sequences both set the number of texts; give one or the other")
        generator, options = self.recipe.generator, self.recipe.decoding
        if generator is None:  # the step predicts, and decoding has no effect
            return options
        writes_one = DataError(f"the generator '{generator.type}' writes one text per query; n must be 1")
        counted = "num_return_sequences" in type(options).model_fields
        if n not in (None, 1) and not counted:
            raise writes_one
        if not chosen:
            fitting = (texts for texts in options.for_texts(n or 1) if not generator.option_errors(texts))
            if (first := next(fitting, None)) is None:
                raise writes_one
            return first
        several = {"num_return_sequences": n} if counted and n is not None else {}
        try:
            options = type(options)(**{**dict(options), **chosen, **several})
        except ValidationError as error:
            place, text = describe_mistake(type(options), error.errors()[0])
            raise DataError(": ".join(filter(None, (".".join(place), text)))) from None
        return self._check_options(options)

    def _check_options(self, options: DecodingConfig) -> DecodingConfig:
        """The options. Raises DataError for those of another class, for those that the generator refuses, and for too
        many texts."""
        generator, options_class = self.recipe.generator, type(self.recipe.decoding)
        if not isinstance(options, options_class):
            raise DataError(f"options must be a {options_class.__name__}, not {options!r:.60}")
        if options.texts > MOST_TEXTS:
            raise DataError(f"num_return_sequences is {options.texts}, but must be at most {MOST_TEXTS}")
        if generator is not None and (refused := generator.option_errors(options)):
            raise DataError("; ".join(f"{name}: {why}" for name, why in refused.items()))
        return options

    def generate(self, examples: Sequence[Example], options: DecodingConfig | None = None) -> list[list[Generation]]:
        """Texts for examples of a data set, best first. `options`: default: the recipe's. Raises RunError for a step
        that does not write texts, and DataError for an example that cannot be read."""
        self._check_writes()
        return generate(self.model, examples, options or self.recipe.decoding, tuple(self.names.inputs))

    def save(self, folder: str | Path, *, half: bool = False, extractor: bool = True) -> Path:
        """Export the model into a folder that `mmgen.load` reads. `half`, `extractor`: see
        `mmgen.inference.export.export`."""
        from ..progress import Progress
        from .export import export
        from .model_card import model_card

        return export(self, folder, half=half, extractor=extractor, card=model_card(self, Progress(), half))

    save_pretrained = save  # the name in other libraries

    def push_to_hub(self, name: str, *, private: bool = False, token: str | bool | None = None) -> str:
        """Export the model and upload it to the hub as "hf:user/name". Returns the URL of the commit."""
        from .hub import push

        with TemporaryDirectory() as folder:
            return push(self.save(Path(folder) / "export"), name, private=private, token=token)

    def warm(self) -> None:
        """Build the extractors and answer a dummy query, so that the first real query is fast. Nobody knows a dummy for
        an input that takes files."""
        values = self._dummy_values()
        if "file" not in map(self.names.takes.get, self.names.required):
            list(self.answers([Query("warm", values)]))

    def needed_labels(self) -> tuple[str, ...]:
        """The labels without which a query cannot be answered (choices, but not the truth), found by trying; all labels
        if an input takes files."""
        values = self._dummy_values()
        labels = [name for name in self.names.labels if name in values]
        if "file" in map(self.names.takes.get, self.names.required):
            return tuple(labels)
        queries = [Query(name, {label: value for label, value in values.items() if label != name}) for name in labels]
        return tuple(answer.id for answer in self.answers(queries) if answer.error)

    def _dummy_values(self) -> dict[str, Any]:
        """A value for every input that a query must give, and for every label of a prediction."""
        labels = () if self.kind == "text" else self.names.labels
        values: dict[str, Any] = dict.fromkeys(labels, ["a", "a"] if self.names.filled else "a")
        for name in self.names.required:
            if name in self.features:
                values[name] = self.features.warm(name)
            elif name in self.names.pictures:
                values[name] = Image.new("RGB", (64, 64))
            else:
                reads = self.names.inputs[name].fields
                values |= dict.fromkeys((name,) if len(reads) == 1 else reads, "a")
        return values


def _single(answers: Sequence[Answer]) -> Answer:
    """The answer to the only query. Raises DataError with its error."""
    (answer,) = answers
    if answer.error:
        raise DataError(answer.error)
    return answer


def _check_count(n: object) -> None:
    """Raises DataError unless `n` is a number of texts that a query may ask for."""
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise DataError("n must be a positive integer")
    if n > MOST_TEXTS:
        raise DataError(f"n is {n}, but must be at most {MOST_TEXTS}")


def _unreadable_message(names: str, error: Exception) -> str:
    """The message for values that a reader could not read."""
    return f"{names}: a value has a form that cannot be read ({type(error).__name__}); see the examples of the data set"


def _remarks_on(texts: Sequence[Generation], end_id: int) -> Iterator[str]:
    """Remarks on texts that repeat themselves or stutter, and on texts without an end; each with the texts' numbers."""
    numbers: dict[str, list[str]] = {}
    for number, text in enumerate(texts, 1):
        cut = text.tokens and text.tokens[-1] != end_id
        no_end = f"the text has no end: it is cut after {len(text.tokens)} tokens (generator.max_tokens)"
        no_end = no_end if cut else unfinished(text.text)
        for remark in filter(None, (repeats_itself(text.text), no_end)):
            numbers.setdefault(remark, []).append(str(number))
    for remark, places in numbers.items():
        yield f"text{'s' * (len(places) > 1)} {', '.join(places)}: {remark}" if len(texts) > 1 else remark
