"""The conformance suite of metrics. The contract is in `mmgen.parts.Metric` and `mmgen.examples.Scores`; result files
are `mmgen.reading.results.ResultFiles`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..configs import MetricConfig
from ..data.part_checks import check_scores
from ..examples import Example, Generation, Prediction, Scores
from ..parts import Metric
from .suite import Suite, assert_json, explained
from .toy import Toy


class MetricSuite(Suite[MetricConfig]):
    """What scoring relies on. `config()` returns a `MetricConfig`; override `examples()` to score other examples."""

    def examples(self) -> Sequence[Example]:
        """At least three examples, with targets where texts are judged."""
        return Toy().build().split("train")

    def generations(self, examples: Sequence[Example]) -> Sequence[Generation | Prediction]:
        """One text for each example: some references, some references of another example, one empty. For a metric that
        does not score texts, return `Prediction`s of its kind, some right and some wrong."""
        texts = [
            example.targets[0] if number % 2 else examples[number - 1].targets[-1]
            for number, example in enumerate(examples)
        ]
        texts[0] = ""
        return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]

    def metric(self) -> Metric:
        return self.config().build()

    def scores(self) -> Scores:
        examples = self.examples()
        return self.score(self.generations(examples), examples)

    def score(self, predictions: Sequence[Any], examples: Sequence[Example]) -> Scores:
        """Scores, checked as a run checks them, and their types."""
        scores = check_scores("suite", self.metric().score(predictions, examples), examples)
        self._assert_types("score", scores)
        return scores

    def _assert_types(self, method: str, scores: Scores) -> None:
        notes = isinstance(scores.notes, tuple | list) and all(isinstance(note, str) for note in scores.notes)
        assert notes, f"{method} returns notes {scores.notes!r:.60}; expected a tuple of texts, ('...',)"
        for name in (*scores.values, *scores.per_example):
            assert isinstance(name, str), f"{method} returns a score named {name!r:.60}; names must be texts"
        listed = {name: list(values) for name, values in scores.per_example.items()}
        assert_json([dict(scores.values), listed], f"what {method} returns")

    def test_values(self) -> None:
        scores = self.scores()
        assert scores.values, "score must return Scores with at least one value"
        unknown = [name for name, value in scores.values.items() if value is None]
        assert not unknown or scores.notes, f"{', '.join(unknown)} is None, but no note says why"

    def test_per_example(self) -> None:
        scores = self.scores()
        for name in scores.per_example:
            assert name in scores.values, f"{name} has values per example, but no total value"

    def test_is_deterministic(self) -> None:
        assert self.scores() == self.scores(), "the same texts get different scores at the second call"

    def test_order_does_not_matter(self) -> None:
        examples = self.examples()
        predictions = self.generations(examples)
        scores, reversed_scores = self.score(predictions, examples), self.score(predictions[::-1], examples[::-1])
        for name, value in scores.values.items():
            reversed_value = reversed_scores.values[name]
            same = value == reversed_value or (
                value is not None
                and reversed_value is not None
                and math.isclose(value, reversed_value, rel_tol=1e-6, abs_tol=1e-9)
            )
            assert same, (
                f"{name} is {value} in one order and {reversed_value} in another; generation i belongs to example i"
            )

    def test_one_example_and_an_empty_text(self) -> None:
        example = self.examples()[0]
        tried: list[Generation | Prediction] = [self.generations(self.examples())[0]]
        if "text" in self.config().judges:
            texts = ("", *example.targets[:1], "  \n", "§ ☃ 'x' \"y\"")
            tried += [Generation(example.id, text, (), 0.0) for text in texts]
        for prediction in tried:
            with explained(f"one example with {prediction.value!r} cannot be scored"):
                self.score([prediction], [example])

    def test_result_files(self) -> None:
        """Predictions that are written to a file and read back have the same scores."""
        files = self.config().result_files()
        if files is None:
            return
        examples = self.examples()
        predictions = self.generations(examples)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results")
            path.write_text(files.write({p.id: p.value for p in predictions}, examples), encoding="utf-8")
            values = files.read(path, examples)
        lost = [example.id for example in examples if example.id not in values]
        assert not lost, f"'{', '.join(lost[:3])}' is written, but not read back"
        restored = [
            Generation(id_, value, (), 0.0) if isinstance(value, str) else Prediction(id_, value, 0.0)
            for id_, value in ((example.id, values[example.id]) for example in examples)
        ]
        before, after = self.score(predictions, examples).values, self.score(restored, examples).values
        assert before == after, f"the scores change from {before} to {after} when predictions are written and read back"

    def test_references(self) -> None:
        scores = self.metric().references(self.examples())
        if scores is not None:
            self._assert_types("references", check_scores("suite", scores, self.examples()))
        names = self.scores().values if scores else ()
        for name in scores.values if scores else ():
            assert name.removeprefix("chance_") in names, f"references() has '{name}', but score does not"
