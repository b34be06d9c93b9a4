"""The conformance suite of metrics."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..configs import MetricConfig
from ..parts import Metric
from ..tensors import Example, Generation, Prediction, Scores
from .suite import Suite, expect
from .toy import Toy

SCORE, SCORES = "mmgen.parts.Metric.score", "mmgen.tensors.Scores"
FILES = "mmgen.reading.results.ResultFiles"


class MetricSuite(Suite[MetricConfig]):
    """What scoring relies on. `config()` returns a `MetricConfig`; `examples()` may give others to score."""

    def examples(self) -> Sequence[Example]:
        """At least three examples, with targets where texts are judged."""
        return Toy().build().split("train")

    def generations(self, examples: Sequence[Example]) -> Sequence[Generation | Prediction]:
        """One for each: texts, some from people, some of another example, one empty. A metric that judges no texts
        gives `Prediction`s of its kind here, some right and some wrong."""
        texts = [
            example.targets[0] if number % 2 else examples[number - 1].targets[-1]
            for number, example in enumerate(examples)
        ]
        texts[0] = ""
        return [Generation(example.id, text, (), 0.0) for example, text in zip(examples, texts, strict=True)]

    def metric(self) -> Metric:
        return self.config().build()

    def scores(self) -> tuple[Scores, Sequence[Example]]:
        examples = self.examples()
        return self.metric().score(self.generations(examples), examples), examples

    def test_values(self) -> None:
        scores, _ = self.scores()
        expect(isinstance(scores, Scores) and scores.values, "score must give Scores with at least one value", SCORE)
        for name, value in scores.values.items():
            expect(isinstance(name, str) and name, f"a value is called {name!r}; names are texts", SCORES)
            expect(
                value is None or (isinstance(value, int | float) and math.isfinite(value)),
                f"{name} is {value!r}; values are finite numbers, or None with a note",
                SCORES,
            )
        unsaid = [name for name, value in scores.values.items() if value is None]
        expect(not unsaid or scores.notes, f"{', '.join(unsaid)} cannot be had here, and no note says why", SCORES)

    def test_per_example(self) -> None:
        scores, examples = self.scores()
        for name, values in scores.per_example.items():
            expect(
                len(values) == len(examples), f"{name} has {len(values)} values for {len(examples)} examples", SCORES
            )
            expect(name in scores.values, f"{name} is told per example, and not over all", SCORES)
            known = [value for value in values if value is not None]
            expect(all(map(math.isfinite, known)), f"{name} is not finite for every example that has it", SCORES)

    def test_the_same_twice(self) -> None:
        first, second = self.scores()[0], self.scores()[0]
        expect(first == second, "the same texts get other scores the second time", SCORE)

    def test_order_does_not_matter(self) -> None:
        examples = self.examples()
        generations, metric = self.generations(examples), self.metric()
        scores, back = metric.score(generations, examples), metric.score(generations[::-1], examples[::-1])
        for name, value in scores.values.items():
            other = back.values[name]
            same = value == other or (
                value is not None and other is not None and math.isclose(value, other, rel_tol=1e-6, abs_tol=1e-9)
            )
            expect(
                same,
                f"{name} is {value} in one order and {other} in another; generations and examples go together by place",
                SCORE,
            )

    def test_one_example_and_an_empty_text(self) -> None:
        example = self.examples()[0]
        tried: list[Generation | Prediction] = [self.generations(self.examples())[0]]
        if "text" in self.config().judges:
            texts = ("", *example.targets[:1], "  \n", "§ ☃ 'x' \"y\"")
            tried += [Generation(example.id, text, (), 0.0) for text in texts]
        for one in tried:
            try:
                scores = self.metric().score([one], [example])
            except Exception as error:
                raise AssertionError(
                    f"one example with {one.value!r} raises {type(error).__name__}: {error}. Read: {SCORE}"
                ) from None
            for name, value in scores.values.items():
                expect(
                    value is None or math.isfinite(value),
                    f"{name} of one example with {one.value!r} is {value}",
                    SCORES,
                )

    def test_result_files(self) -> None:
        """Predictions that have been written and read again have the same scores."""
        files = self.config().result_files()
        if files is None:
            return
        examples = self.examples()
        made = self.generations(examples)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "results")
            path.write_text(files.write({one.id: one.value for one in made}, examples), encoding="utf-8")
            read = files.read(path, examples)
        lost = [example.id for example in examples if example.id not in read]
        expect(not lost, f"'{', '.join(lost[:3])}' is written, and not read again", FILES)
        again = [
            Generation(own, value, (), 0.0) if isinstance(value, str) else Prediction(own, value, 0.0)
            for own, value in ((example.id, read[example.id]) for example in examples)
        ]
        before, after = (self.metric().score(each, examples).values for each in (made, again))
        expect(before == after, f"what is written and read again scores {after}, and scored {before}", FILES)

    def test_references(self) -> None:
        scores = self.metric().references(self.examples())
        if scores is None:
            return
        names = self.scores()[0].values
        for name in scores.values:
            expect(
                name.removeprefix("chance_") in names,
                f"references() tells '{name}', which score does not",
                "mmgen.parts.Metric.references",
            )
