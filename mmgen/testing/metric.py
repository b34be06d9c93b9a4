"""The conformance suite of metrics. The contract is in `mmgen.parts.Metric` and `mmgen.examples.Scores`; result files
are `mmgen.reading.results.ResultFiles`."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from dataclasses import replace
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
        return [Generation(e.id, text, (), 0.0) for e, text in zip(examples, ["", *texts[1:]], strict=True)]

    def metric(self) -> Metric:
        return self.buildable().build()

    def score(self, predictions: Sequence[Any], examples: Sequence[Example]) -> Scores:
        """Scores, checked as a run checks them, and their types."""
        return assert_scores(self.metric().score(predictions, examples), examples)

    def test_scores(self) -> None:
        """They are the same every time, and in any order."""
        examples = self.examples()
        predictions = self.generations(examples)
        scores = self.score(predictions, examples)
        values = scores.values
        assert values, "score must return Scores with at least one value"
        assert None not in values.values() or scores.notes, "a score is None, but no note says why"
        assert scores.per_example.keys() <= values.keys(), "a score has values per example, but no total value"
        assert scores == self.score(predictions, examples), "the same texts get different scores at the second call"
        turned = self.score(predictions[::-1], examples[::-1]).values
        for name, value in values.items():
            same = value == turned[name] or math.isclose(value or 0, turned[name] or 0, rel_tol=1e-6, abs_tol=1e-9)
            assert same, f"{name} is {value} in one order and {turned[name]} in another; generation i is of example i"
        chances = self.metric().references(examples)
        for name in assert_scores(chances, examples).values if chances else ():
            assert name.removeprefix("chance_") in values, f"references() has '{name}', but score does not"

    def test_one_example_and_an_empty_text(self) -> None:
        example = self.examples()[0]
        tried = [*self.generations(self.examples())[:1]]
        if "text" in self.config().judges:
            tried += [Generation(example.id, t, (), 0.0) for t in ("", *example.targets[:1], "  \n", "§ ☃ 'x' \"y\"")]
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
        lost = [p.id for p in predictions if p.id not in values]
        assert not lost, f"'{lost[0]}' is written, but not read back"
        fields = {Generation: "text", Prediction: "value"}
        restored = [replace(p, **{fields[type(p)]: values[p.id]}) for p in predictions]
        before, after = self.score(predictions, examples).values, self.score(restored, examples).values
        assert before == after, f"the scores change from {before} to {after} when predictions are written and read back"


def assert_scores(scores: Scores, examples: Sequence[Example]) -> Scores:
    """Fails unless scores are as a run needs them, with names and notes that are texts."""
    check_scores("suite", scores, examples)
    notes = not isinstance(scores.notes, str) and all(isinstance(note, str) for note in scores.notes)
    assert notes, f"notes are {scores.notes!r:.60}; expected a tuple of texts, ('...',)"
    assert all(isinstance(name, str) for name in scores.values), f"names of {dict(scores.values)} must be texts"
    assert_json([dict(scores.values), {name: [*values] for name, values in scores.per_example.items()}], "scores")
    return scores
