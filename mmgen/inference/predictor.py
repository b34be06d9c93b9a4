"""The predictor: one step of a finished run that answers queries. The command line, Python and services stand on it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import torch

from ..data.checked import check_predictions, check_texts
from ..data.collate import Collator, ReadExample
from ..data.unread_text import remarks
from ..decoding import Decoding
from ..errors import DataError, MissingInput, MissingLabel, RunError
from ..evaluation.collapse import repeats_itself
from ..evaluation.generate import generate
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, ADVICE_SMALLER, OomRetry
from ..recipe.tables import GENERATOR, Recipe
from ..storage.run_folder import RunFolder
from ..tensors import All, Example, Generation, Prediction, ResolvedExample
from .answers import Answer
from .features import QueryFeatures
from .names import Bound, StepNames
from .query import Query, from_json, is_many, queries_of

MOST_TEXTS = 100  # of one query
UNREADABLE = (TypeError, ValueError, AttributeError, LookupError)  # what readers raise for values of other types


@dataclass(frozen=True)
class Prepared:
    """A query on its way to an answer. `read`: its example, read; None where `answer` says already why not."""

    answer: Answer
    read: ReadExample | None = None


class Predictor:
    """A model with the weights of one step, ready to answer. Any number of threads may call; extractors are built when
    the first picture comes, and kept.

        run = load_run("runs/first/default/seed-0", step="both")
        run.ask("photo.jpg", caption="a dog on a beach", n=3).texts
        [answer.value for answer in run.ask(["a.jpg", "b.jpg"], caption="a dog")]

    model   the model; it is put into eval mode
    recipe  its recipe, as the run has it
    step    the step whose inputs it reads, and whose kind of answer it gives
    folder  the run's folder, where there is one
    """

    def __init__(self, model: Model, recipe: Recipe, step: str, folder: RunFolder | None = None) -> None:
        self.model, self.recipe, self.step, self.folder = model.eval(), recipe, step, folder
        self.names = StepNames(recipe, step)
        self.objective, self.kind = recipe.predicts(step) or (GENERATOR, "text")  # a step that only trains writes
        objectives = () if self.kind == "text" else (self.objective,)
        self._collator = Collator(model, tuple(self.names.inputs), objectives, predicting=True)
        self.features = QueryFeatures(model, self.names.inputs, self.where)

    def __repr__(self) -> str:
        return f"<{self.where}: step '{self.step}', reads {self.names.reads}, gives {self.kind}>"

    @property
    def where(self) -> str:
        """What errors begin with: the run's folder."""
        return str(self.folder.path) if self.folder else self.recipe.name

    @overload
    def ask(
        self,
        query: list[Any] | Sequence[Example],
        /,
        *,
        n: int = 1,
        options: Decoding | None = None,
        batch_size: int = 16,
        **inputs: Any,
    ) -> list[Answer]: ...

    @overload
    def ask(
        self, query: Any = None, /, *, n: int = 1, options: Decoding | None = None, batch_size: int = 16, **inputs: Any
    ) -> Answer: ...

    def ask(
        self, query: Any = None, /, *, n: int = 1, options: Decoding | None = None, batch_size: int = 16, **inputs: Any
    ) -> Answer | list[Answer]:
        """`n` different texts about a picture, or whatever else the step reads; of a list, an answer for each element.

        query       a picture for the one input that takes pictures, a dict of values by input, a `Query`, or an
                    `Example` of a data set. A list of these, or a split's examples, is that many queries
        n           how many different texts, 1 to 100: by diverse beam search where the generator knows it
        options     another search instead, with its own num_return_sequences
        batch_size  queries that are answered together
        inputs      values by the names of inputs, for every query that does not give its own

        A picture is a path, a key of the run's features, bytes, a file opened for reading, a PIL image, an array
        (H, W, 3) of uint8, or features (`mmgen.parts.Record`). Several pictures for one input are `All((a, b))`.

        Raises DataError for a query that cannot be read; of a list, such a query has an `Answer.error` instead. Raises
        RunError for a step that predicts something else, and UnavailableError where a picture cannot become the
        features that were trained on."""
        if self.kind != "text":
            raise RunError(f"{self.where}: the step '{self.step}' predicts a {self.kind}; use predict")
        return self._call(query, inputs, options or self.decoding(n), batch_size)

    @overload
    def predict(
        self, query: list[Any] | Sequence[Example], /, *, batch_size: int = 16, **inputs: Any
    ) -> list[Answer]: ...

    @overload
    def predict(self, query: Any = None, /, *, batch_size: int = 16, **inputs: Any) -> Answer: ...

    def predict(self, query: Any = None, /, *, batch_size: int = 16, **inputs: Any) -> Answer | list[Answer]:
        """What the step predicts (a label, a choice, a region, boxes; of a step that writes, one text): `Answer.value`
        and `Answer.score`. All else is as in `ask`."""
        return self._call(query, inputs, None, batch_size)

    def _call(
        self, query: Any, inputs: Mapping[str, Any], options: Decoding | None, batch_size: int
    ) -> Answer | list[Answer]:
        for name in self.names.pictures:
            if isinstance(inputs.get(name), list | tuple):
                raise DataError(
                    f"{name}: a list of pictures may be several queries or several pictures of one; write {name}=All("
                    "(a, b)) for one query about both (mmgen.tensors.All), or a list of queries as the first argument"
                )
        queries = queries_of(query, inputs)
        if not is_many(query):
            (answer,) = self.answers(queries, options, batch_size)
            if answer.error:
                raise DataError(answer.error)
            return answer
        return list(self.answers(queries, options, batch_size))

    def answers(
        self, queries: Iterable[Query | Example], options: Decoding | None = None, batch_size: int = 16
    ) -> Iterator[Answer]:
        """An answer for every query, in their order; one that cannot be read has its reason as `Answer.error`.
        `batch_size`: queries that are answered together, which is quicker, and later for the first."""
        if not isinstance(batch_size, int) or batch_size < 1:
            raise DataError(f"batch_size must be a positive integer, not {batch_size!r:.60}")
        writes = self.kind == "text"
        retry = OomRetry("writing", ADVICE_FEWER_TEXTS) if writes else OomRetry("predicting", ADVICE_SMALLER)
        coming = iter(queries)
        while batch := [self.prepare(query) for query in itertools.islice(coming, batch_size)]:
            ready = [query.read for query in batch if query.read is not None]
            pieces = retry.over(ready, lambda piece: self._outcomes(piece, options or Decoding()))
            outcomes = iter([outcome for _, made in pieces for outcome in made])
            for query in batch:
                yield query.answer if query.read is None else _with(query.answer, next(outcomes))

    def prepare(self, query: Query | Example) -> Prepared:
        """A query as a resolved example, whose inputs are read, once."""
        bound = None
        try:
            if isinstance(query, Query):
                bound = self.names.checked(query)
            example = self._example(query, bound) if isinstance(query, Query) and bound else query
            assert isinstance(example, Example)
            read = self._collator.read(example)
        except DataError as error:
            return Prepared(Answer(query.id, error=self._reason(error, bound)))
        except UNREADABLE as error:
            return Prepared(Answer(query.id, error=f"{self.names.reads}: cannot be read: {error}"))
        found = [
            remark
            for name, config in self.names.inputs.items()
            for row in read.rows[:1]
            for remark in remarks(name, config, self.model.backbone, row.example.seen_by(name))
        ]
        return Prepared(Answer(query.id, remarks=tuple(found)), read)

    @torch.inference_mode()
    def _outcomes(
        self, examples: Sequence[ReadExample], options: Decoding
    ) -> Sequence[list[Generation] | Prediction | str]:
        """Texts, a prediction or an error for each."""
        try:
            batch = self._collator.batch(examples)
        except (DataError, *UNREADABLE) as error:
            if len(examples) > 1:  # one of them cannot be read: the others go on
                return [outcome for example in examples for outcome in self._outcomes([example], options)]
            labels = " and ".join(examples[0].rows[0].example.labels)
            return [self._reason(error) if isinstance(error, DataError) else f"{labels}: cannot be read: {error}"]
        batch = batch.to(self.model.device)
        if self.kind == "text":
            texts = self.model.generator.generate(self.model, batch, options)
            return check_texts(texts, batch.ids, options.num_return_sequences, self.model.generator)
        objective = self.model.objective(self.objective)
        predictions = objective.predict(self.model, batch, batch.targets[self.objective])
        return check_predictions(predictions, batch.ids, self.objective, objective)

    def _reason(self, error: DataError, bound: Bound | None = None) -> str:
        """What a query's answer says of an error: what was given in the place of a text, how a label is given."""
        if isinstance(error, MissingLabel) and error.label in self.names.labels:
            name = error.label
            return f'{error}; give it with --input {name}=VALUE, or as "{name}" in a line'
        values = [
            (name, field, value)
            for name, fields in (bound.inputs if bound else {}).items()
            if name not in self.names.pictures
            for field, value in fields.items()
            if not isinstance(value, str)
        ]
        for name, field, value in values:
            if isinstance(error, MissingInput) and error.field == field:
                return f"{name} must be a text, not {json.dumps(value, default=str)[:40]}"
        return str(error)

    def _example(self, query: Query, bound: Bound) -> ResolvedExample:
        """The example that readers read. Raises DataError."""
        by_input = {
            name: {
                field: self.features.of(name, value, query) if name in self.features else self._plain(field, value)
                for field, value in fields.items()
            }
            for name, fields in bound.inputs.items()
        }
        inputs = {field: value for fields in reversed(by_input.values()) for field, value in fields.items()}
        overrides = {
            name: {field: value for field, value in fields.items() if value is not inputs[field]}
            for name, fields in by_input.items()
        }
        labels = {name: self._plain(name, value) for name, value in bound.labels.items()}
        for name, value in bound.optional.items():
            try:
                self._add_optional(name, from_json(value), inputs, labels)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}: {error}") from None
        overrides = {name: fields for name, fields in overrides.items() if fields}
        return ResolvedExample(query.id, inputs, labels=labels, overrides=overrides)

    def _add_optional(self, name: str, value: Any, inputs: dict[str, Any], labels: dict[str, Any]) -> None:
        """A field that is read where it is there: of the example, or where each row has its own, among the labels.
        Raises ValueError."""
        config = self.names.optional[name]
        if name not in self.names.filled:
            inputs[name] = config.from_json(name, value)
            return
        if not isinstance(value, list):
            raise ValueError(f"{str(value)[:60]} is not a list; give one for each row")
        rows = [config.from_json(name, row) for row in value]
        labels[name] = [row.values if isinstance(row, All) else row for row in rows]

    def _plain(self, name: str, value: Any) -> Any:
        """A value as it is; of what rows differ in, a list that may have been typed as JSON."""
        if name not in {*self.names.filled, *self.names.labels}:
            return value
        try:
            return from_json(value)
        except (ValueError, RecursionError):  # a text that begins like JSON
            return value

    def decoding(self, n: int = 1) -> Decoding:
        """How n different texts are searched for: by diverse beam search, else by what the generator knows. Raises
        DataError."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 1:
            raise DataError("n must be a positive integer")
        if n > MOST_TEXTS:
            raise DataError(f"n is {n}; at most {MOST_TEXTS} texts can be written for one query")
        if n == 1:
            return Decoding()
        searches = (
            Decoding(num_beams=2 * n, num_beam_groups=n, diversity_penalty=1.0, num_return_sequences=n),
            Decoding(num_beams=n, num_return_sequences=n),
            Decoding(do_sample=True, num_return_sequences=n),
        )
        known = (options for options in searches if not self.recipe.generator.refuses(options))
        options = next(known, None)
        if options is None:
            raise DataError(f"the generator '{self.recipe.generator.type}' writes one text for a query; n must be 1")
        return options

    def generate(self, examples: Sequence[Example], options: Decoding | None = None) -> list[list[Generation]]:
        """Texts for examples of a data set, best first. `options` default to the recipe's. Raises RunError for a step
        that writes none, DataError for an example that cannot be read."""
        if self.kind != "text":
            raise RunError(f"the step '{self.step}' predicts {self.kind}s and writes no texts; use predict")
        return generate(self.model, examples, options or self.recipe.decoding, tuple(self.names.inputs))

    def warm(self) -> None:
        """Build what the first query would wait for, extractors, and answer a query of made-up values once."""
        values: dict[str, Any] = dict.fromkeys(self.names.labels, ["a", "a"] if self.names.filled else "a")
        for name in self.names.required:
            if name in self.names.pictures:
                values[name] = self.features.warm(name)
            else:
                reads = self.names.inputs[name].fields
                values |= dict.fromkeys((name,) if len(reads) == 1 else reads, "a")
        list(self.answers([Query("warm", values)]))


def _with(answer: Answer, outcome: list[Generation] | Prediction | str) -> Answer:
    """An answer with what came out; of a text that repeats itself, a remark."""
    if isinstance(outcome, str):
        return replace(answer, error=outcome, remarks=())
    if isinstance(outcome, Prediction):
        return replace(answer, prediction=outcome)
    remark = repeats_itself(outcome[0].text)
    return replace(answer, texts=tuple(outcome), remarks=(*answer.remarks, *([remark] if remark else [])))
