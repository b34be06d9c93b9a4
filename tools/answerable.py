"""python -m tools.answerable RUN: is the metric answerable right? Its judgement beside the truth, on drawn scenes.

RUN is a run of recipes/answerable.toml. Every step that writes has a row; so have people's questions about their own
scenes, and the same questions about other scenes. The files are RUN/answerable.md, with the rows by form of question
too, and RUN/answerable.json, with every question. Questions in doubt count nowhere but in the column `doubt`.

    true       of the questions: those that have an answer, by `mmgen_scenes.answering`
    answered   by the metric: of the questions that have an answer, and of those that have none
    agreement  the questions for which truth and metric agree; balanced: the mean of those with and without an answer
    AUC        the chance that a question with an answer has a higher confidence than one without
    right      of the answered questions that have an answer: those that are answered rightly
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import torch
from mmgen_answerable import Answerable
from mmgen_answerable.metric import AnswerableMetric
from mmgen_scenes.answering import FORMS, find_answers

from mmgen.data.datasets import Datasets
from mmgen.evaluation.score import build_metric
from mmgen.progress import number, table
from mmgen.registry import installed
from mmgen.storage import generations
from mmgen.storage.run_folder import RunFolder
from mmgen.tensors import Example

PEOPLE, ELSEWHERE = "people", "people, another scene"
HEADER = (
    "",
    "questions",
    "doubt",
    "true",
    "answered, true",
    "answered, false",
    "agreement",
    "balanced",
    "AUC",
    "right",
)


@dataclass(frozen=True)
class Judged:
    """A question about a scene: what is true of it (`answerable`: None in doubt), and what the metric makes of it."""

    source: str
    scene: str
    text: str
    form: str
    answerable: bool | None
    answers: list[str]
    answered: bool
    answer: str
    confidence: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--answerer", default="", help="a run or an export; by default RUN")
    parser.add_argument("--step", default="answers")
    parser.add_argument("--threshold", type=float, default=0.5)
    options = parser.parse_args(arguments)
    config = Answerable(
        answerer=options.answerer or str(options.run), step=options.step, threshold=options.threshold, other_pictures=0
    )
    questions = measure(options.run, config)
    (options.run / "answerable.json").write_text(json.dumps([asdict(question) for question in questions], indent=1))
    text = f"{report(questions)}\nthreshold {options.threshold:g}, {len(questions):,} questions\n"
    (options.run / "answerable.md").write_text(text)
    print(text, end="")


def measure(run: Path, config: Answerable) -> list[Judged]:
    """Every question of the run's steps and of people, judged."""
    folder = RunFolder(run)
    recipe = folder.recipe(installed())
    datasets = Datasets(recipe)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    metric = build_metric("answerable", config, [datasets.main], device)
    assert isinstance(metric, AnswerableMetric)
    examples = list(datasets.main.split(recipe.data.test_split))
    references = [example.targets[0] for example in examples]
    texts = {
        step: [best[example.id].text for example in examples]
        for step in recipe.steps
        if recipe.makes_texts(step) and folder.finished(step, "generations.jsonl")
        if (best := generations.best(folder.step(step)))
    }
    texts |= {PEOPLE: references, ELSEWHERE: [*references[1:], *references[:1]]}
    return [question for source, lines in texts.items() for question in judged(source, lines, examples, metric)]


def judged(
    source: str, texts: Sequence[str], examples: Sequence[Example], metric: AnswerableMetric
) -> Iterable[Judged]:
    for text, example, judgement in zip(texts, examples, metric.judge(texts, examples), strict=True):
        verdict = find_answers(text, example.facts["things"])
        yield Judged(
            source,
            example.id,
            text,
            verdict.form or "no question",
            verdict.answerable,
            sorted(verdict.answers),
            judgement.answered,
            judgement.answer,
            judgement.confidence,
        )


def report(questions: Sequence[Judged]) -> str:
    """The tables by source and by form, as Markdown."""
    sources = list(dict.fromkeys(question.source for question in questions))
    by_source = [row(source, [question for question in questions if question.source == source]) for source in sources]
    forms = [form for form in (*FORMS, "no question") if any(question.form == form for question in questions)]
    by_form = [row(form, [question for question in questions if question.form == form]) for form in forms]
    return "\n\n".join(table([[*HEADER], *rows]) for rows in ([*by_source, row("all", questions)], by_form))


def row(label: str, questions: Sequence[Judged]) -> list[str]:
    certain = [question for question in questions if question.answerable is not None]
    true = [question for question in certain if question.answerable]
    false = [question for question in certain if not question.answerable]
    rates = [share(question.answered for question in true), share(not question.answered for question in false)]
    known = [rate for rate in rates if rate is not None]
    return [
        label,
        str(len(questions)),
        str(len(questions) - len(certain)),
        number(share(bool(question.answerable) for question in certain)),
        number(rates[0]),
        number(share(question.answered for question in false)),
        number(share(question.answered == question.answerable for question in certain)),
        number(fmean(known) if len(known) == 2 else None),
        number(auc([q.confidence for q in true], [q.confidence for q in false])),
        number(share(question.answer in question.answers for question in true if question.answered)),
    ]


def share(values: Iterable[bool]) -> float | None:
    """In percent; None of nothing."""
    counted = list(values)
    return 100 * fmean(counted) if counted else None


def auc(positive: Sequence[float], negative: Sequence[float]) -> float | None:
    """In percent; ties count half."""
    pairs = [(a > b) + (a == b) / 2 for a in positive for b in negative]
    return 100 * fmean(pairs) if pairs else None


if __name__ == "__main__":
    main()
