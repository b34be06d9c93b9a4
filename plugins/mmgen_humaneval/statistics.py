"""Statistics of filled sheets: means, deviations, t-tests against people's questions, agreement; and their tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np

from mmgen.progress import number, table

from .agreement import alpha, mean_alpha, pairs_of_judges
from .answers import Answers

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Cell:
    """One system by one criterion. A picture is one observation: its ratings are first averaged over judges.

    mean, deviation         over pictures; the deviation with n - 1, None for one picture
    difference, interval    difference from people's questions about the same pictures, and its 95 % interval
    p                       two-tailed paired t-test of that difference
    p_unpaired              Welch's t-test, which ignores that the pictures are the same; for comparison with papers
    """

    mean: float | None
    deviation: float | None
    pictures: int
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    p_unpaired: float | None = None


@dataclass(frozen=True)
class Result:
    """Results of all sheets.

    judges     judge -> criterion -> mean of this judge's ratings
    systems    system -> criterion -> cell, of the people's ratings; of the programs' if no judge is a person
    agreement  criterion -> Krippendorff's alpha of the same judges
    programs   program -> system -> criterion -> mean of the program's ratings
    pairs      "people", or a program -> criterion -> alpha of two judges: the mean over all pairs of people, or over
               the pairs of the program and a person
    """

    human: str
    judges: Mapping[str, Mapping[str, float | None]]
    systems: Mapping[str, Mapping[str, Cell]]
    agreement: Mapping[str, float | None]
    questions: int
    missing: int
    programs: Mapping[str, Mapping[str, Mapping[str, float | None]]] = field(default_factory=dict)
    pairs: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)


def evaluate(everything: Answers) -> Result:
    """Compute all results from (J, Q) ratings."""
    people = [place for place, judge in enumerate(everything.judges) if judge not in everything.programs]
    programs = {judge: place for place, judge in enumerate(everything.judges) if judge in everything.programs}
    answers = _ratings_of_judges(everything, people) if people and programs else everything
    systems = {
        system: {criterion: _statistics_of(answers, system, criterion) for criterion in answers.criteria}
        for system in answers.systems
    }
    judges = {
        judge: {name: _mean(everything.ratings[name][place]) for name in everything.criteria}
        for place, judge in enumerate(everything.judges)
    }
    return Result(
        answers.human,
        judges,
        systems,
        {criterion: alpha(ratings) for criterion, ratings in answers.ratings.items()},
        len({place for places in answers.questions.values() for place in places.tolist()}),
        int(sum(np.isnan(ratings).sum() for ratings in everything.ratings.values())),
        {
            judge: {
                system: {name: _mean(everything.ratings[name][place][questions]) for name in everything.criteria}
                for system, questions in everything.questions.items()
            }
            for judge, place in programs.items()
        },
        {
            name: {criterion: mean_alpha(ratings, pairs) for criterion, ratings in everything.ratings.items()}
            for name, pairs in pairs_of_judges(people, programs).items()
        },
    )


def _ratings_of_judges(answers: Answers, places: list[int]) -> Answers:
    ratings = {criterion: values[places] for criterion, values in answers.ratings.items()}
    return replace(answers, judges=tuple(answers.judges[place] for place in places), ratings=ratings)


def _statistics_of(answers: Answers, system: str, criterion: str) -> Cell:
    ratings = answers.ratings[criterion]
    ratings_of_system, ratings_of_people = (
        ratings[:, answers.questions[system]],
        ratings[:, answers.questions[answers.human]],
    )  # (J, I) each
    means = _over_judges(ratings_of_system)
    known_means = means[~np.isnan(means)]
    statistics = (
        _mean(known_means),
        float(known_means.std(ddof=1)) if len(known_means) > 1 else None,
        len(known_means),
    )
    if system == answers.human:
        return Cell(*statistics)
    differences = _over_judges(ratings_of_system - ratings_of_people)  # from judges who rated both
    differences = differences[~np.isnan(differences)]
    human_means = _over_judges(ratings_of_people)
    return Cell(
        *statistics,
        _mean(differences),
        *paired(differences),
        unpaired(known_means, human_means[~np.isnan(human_means)]),
    )


def paired(differences: np.ndarray) -> tuple[tuple[float, float] | None, float | None]:
    """95 % interval of the mean difference, and p for a mean of 0: two-tailed Student's t-test over pictures."""
    from scipy.stats import ttest_1samp

    if len(differences) < 2:
        return None, None
    if np.allclose(differences, differences[0]):  # no variance: t would be 0 / 0, or infinite
        value = float(differences.mean())
        return (value, value), float(np.isclose(value, 0))
    test = ttest_1samp(differences, 0.0)
    low, high = test.confidence_interval(0.95)
    return (float(low), float(high)), float(test.pvalue)


def unpaired(first: np.ndarray, second: np.ndarray) -> float | None:
    """Two-tailed p by Welch's t-test."""
    from scipy.stats import ttest_ind

    if len(first) < 2 or len(second) < 2:
        return None
    if np.allclose(first, first[0]) and np.allclose(second, second[0]):
        return float(np.isclose(first[0], second[0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one of the samples may be constant
        return float(ttest_ind(first, second, equal_var=False).pvalue)


def _over_judges(ratings: np.ndarray) -> np.ndarray:
    """(I,) means over the judges of (J, I) ratings; NaN where all ratings are missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "mean of empty slice"
        return np.nanmean(ratings, axis=0)


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else None


def format_result(result: Result) -> Iterator[str]:
    """Lines of a table like the paper's table 3, and of notes that explain its numbers."""
    criteria = list(result.agreement)
    rows = [["system", *(cell for criterion in criteria for cell in (criterion.replace("_", " "), "p"))]]
    order = [*(system for system in result.systems if system != result.human), result.human]
    for system in order:
        row = [system]
        for criterion in criteria:
            cell = result.systems[system][criterion]
            star = "*" if cell.p is not None and cell.p < SIGNIFICANT else " "
            row += [f"{number(cell.mean)} ± {number(cell.deviation)}{star}", _format_probability(cell.p)]
        rows.append(row)
    yield from table(rows).split("\n")
    yield ""
    pictures = max(cell.pictures for cells in result.systems.values() for cell in cells.values())
    yield (
        f"{_count_judges(result)}, {_count_of(pictures, 'picture')}, "
        f"{_count_of(result.questions, 'different question')}, "
        f"ratings 1 to 5; mean ± standard deviation over pictures, of the judges' mean"
    )
    yield (
        f"p, and * below {SIGNIFICANT:g}: two-tailed t-test against {result.human}, paired by picture because all "
        "questions about a picture share the picture and its judges; n is the number of pictures"
    )
    used = (len(result.judges) - len(result.programs)) or len(result.judges)
    yield f"agreement, Krippendorff's alpha (ordinal): {_by_criterion(result.agreement)}" + (
        "; needs two judges" if used < 2 else ""
    )
    for judge, values in result.pairs.items():
        pair = "two people" if judge == "people" else f"{judge} and a person"
        yield f"alpha of {pair}, the mean over pairs: {_by_criterion(values)}"
    for judge, systems in result.programs.items() if result.pairs else ():
        for system in order:
            yield f"{judge} gave {system}: {_by_criterion(systems[system])}"
    for judge, means in result.judges.items():
        known_means = [mean for mean in means.values() if mean is not None]
        yield f"{judge} gave {fmean(known_means):.2f} on average" if known_means else f"{judge} gave no ratings"
    if result.missing:
        yield f"missing ratings: {result.missing}; a difference counts only judges who rated both questions"


def _count_judges(result: Result) -> str:
    """How many judges the table is about."""
    people = len(result.judges) - len(result.programs)
    if not result.programs:
        return _count_of(people, "judge")
    compared = f" (and {_count_of(len(result.programs), 'program')} for comparison)" if people else ""
    return f"{_count_of(people or len(result.programs), 'judge' if people else 'program')}{compared}"


def _by_criterion(values: Mapping[str, float | None]) -> str:
    return ", ".join(f"{criterion.replace('_', ' ')} {number(value)}" for criterion, value in values.items())


def _count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _format_probability(value: float | None) -> str:
    return "-" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
