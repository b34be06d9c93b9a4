"""Statistics of filled sheets: means, deviations, t-tests against people's questions, agreement; and their tables."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mmgen.errors import DataError
from mmgen.progress import number, table

from .sheet import Filled, Key, read

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Answers:
    """A key, and criterion -> (J, Q) ratings of its Q questions by J judges, NaN where one is missing."""

    key: Key
    judges: Sequence[str]
    ratings: Mapping[str, np.ndarray]


def read_answers(key_path: Path, sheets: Sequence[Path], partial: bool = False) -> Answers:
    """Read the key and all sheets. `partial`: ratings may be missing. Raises DataError."""
    key = read(key_path, Key)
    filled: dict[str, Filled] = {}
    for path in sheets:
        sheet = read(path, Filled)
        if sheet.sheet != key.sheet:
            raise DataError(f"{path}: belongs to another sheet than {key_path}; use matching files")
        if sheet.judge in filled:
            raise DataError(f"{path}: is the second sheet by {sheet.judge}; give one sheet per judge")
        given = [sheet.ratings.get(question.id, {}).keys() >= {*key.criteria} for question in key.questions]
        if not (partial or all(given)):
            first = key.questions[given.index(False)].id
            raise DataError(
                f"{path}: {given.count(False)} of {len(given)} questions lack ratings (first: {first}); complete the "
                "sheet, or use --partial"
            )
        filled[sheet.judge] = sheet
    ratings = {
        criterion: np.array(
            [
                [sheet.ratings.get(question.id, {}).get(criterion, np.nan) for question in key.questions]
                for sheet in filled.values()
            ],
            np.float64,
        )
        for criterion in key.criteria
    }
    return Answers(key, [*filled], ratings)


@dataclass(frozen=True)
class Cell:
    """One system by one criterion. A picture is one observation: its ratings are first averaged over judges.

    mean, deviation         over pictures; the deviation with n - 1, None for one picture
    difference, interval    difference from people's questions about the same pictures, and its 95 % interval
    p                       two-tailed paired t-test of that difference
    """

    mean: float | None
    deviation: float | None
    pictures: int
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None


@dataclass(frozen=True)
class Result:
    """Results of all sheets.

    judges     judge -> criterion -> the mean rating, and the mean of Krippendorff's alpha with each of the others
    agreement  criterion -> alpha of all judges
    """

    human: str
    systems: Mapping[str, Mapping[str, Cell]]
    judges: Mapping[str, Mapping[str, tuple[float | None, float | None]]]
    agreement: Mapping[str, float | None]
    missing: int


def evaluate(answers: Answers) -> Result:
    """Compute all results from (J, Q) ratings."""
    key, ratings = answers.key, answers.ratings
    places = {
        system: [place for place, question in enumerate(key.questions) if system in question.systems]
        for system in key.systems
    }
    systems = {
        system: {
            name: _cell(values[:, places[system]], None if system == key.human else values[:, places[key.human]])
            for name, values in ratings.items()
        }
        for system in sorted(key.systems, key=key.human.__eq__)  # people last, as in the paper
    }
    judges = {
        judge: {name: _judge_cell(values, place) for name, values in ratings.items()}
        for place, judge in enumerate(answers.judges)
    }
    agreement = {name: alpha(values) for name, values in ratings.items()}
    return Result(
        key.human, systems, judges, agreement, int(sum(np.isnan(values).sum() for values in ratings.values()))
    )


def _cell(ratings: np.ndarray, by_people: np.ndarray | None) -> Cell:
    """The statistics of (J, I) ratings of a system. `by_people`: the ratings of people's questions about the same
    pictures."""
    means = _known(_over_judges(ratings))
    statistics = _mean(means), float(means.std(ddof=1)) if len(means) > 1 else None, len(means)
    if by_people is None:
        return Cell(*statistics)
    differences = _known(_over_judges(ratings - by_people))  # from judges who rated both
    return Cell(*statistics, _mean(differences), *paired(differences))


def _judge_cell(ratings: np.ndarray, place: int) -> tuple[float | None, float | None]:
    others = (alpha(ratings[[place, other]]) for other in range(len(ratings)) if other != place)
    return _mean(ratings[place]), _mean(np.array([*others], np.float64))


def alpha(ratings: np.ndarray) -> float | None:
    """Krippendorff's ordinal alpha of (J, Q) ratings, NaN where one is missing: 1 is perfect agreement, 0 is chance.

    Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011), steps A to E with the ordinal difference. Returns
    None if no question has two ratings, or if all ratings have the same value: alpha is undefined then.
    """
    values = np.unique(_known(ratings))
    counts = (ratings[:, :, None] == values).sum(0).astype(np.float64)  # (Q, values)
    counts = counts[counts.sum(1) > 1]  # a single rating cannot agree
    weighed = counts / (counts.sum(1, keepdims=True) - 1)
    pairs = counts.T @ weighed - np.diag(weighed.sum(0))  # coincidences, without pairs of a rating with itself
    totals = pairs.sum(1)
    between = np.cumsum(totals) - totals / 2  # up to the middle of each value's ranks
    distance = (between[:, None] - between[None, :]) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / max(totals.sum() - 1, 1)
    return None if not expected else float(1 - (pairs * distance).sum() / expected)


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


def _over_judges(ratings: np.ndarray) -> np.ndarray:
    """(I,) means over the judges of (J, I) ratings; NaN where all ratings are missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "mean of empty slice"
        return np.nanmean(ratings, axis=0)


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _mean(values: np.ndarray) -> float | None:
    known = _known(values)
    return float(known.mean()) if known.size else None


def format_result(result: Result) -> Iterator[str]:
    """Lines of a table like the paper's table 3, of a table of the judges, and of notes that explain the numbers."""
    names = [name.replace("_", " ") for name in result.agreement]
    rows = [["system", *(cell for name in names for cell in (name, "p"))]]
    for system, cells in result.systems.items():
        row = [system]
        for cell in cells.values():
            star = "*" if cell.p is not None and cell.p < SIGNIFICANT else " "
            row += [f"{number(cell.mean)} ± {number(cell.deviation)}{star}", _format_probability(cell.p)]
        rows.append(row)
    yield from table(rows).split("\n")
    yield ""
    rows = [["judge", *(cell for name in names for cell in (name, "alpha"))]]
    for judge, judge_cells in result.judges.items():
        rows.append([judge, *(number(value) for cell in judge_cells.values() for value in cell)])
    rows.append(["all", *(cell for value in result.agreement.values() for cell in ("-", number(value)))])
    yield from table(rows).split("\n")
    yield ""
    yield "mean ± standard deviation over pictures, of the judges' mean; ratings are from 1 to 5"
    yield (
        f"p, and * below {SIGNIFICANT:g}: two-tailed t-test against {result.human}, paired by picture because all "
        "questions about a picture share the picture and its judges"
    )
    yield "alpha: Krippendorff's (ordinal), of a judge the mean over pairs with each of the others"
    if result.missing:
        yield f"missing ratings: {result.missing}; a difference counts only judges who rated both questions"


def _format_probability(value: float | None) -> str:
    return "-" if value is None else "<0.001" if value < 0.001 else f"{value:.3f}"
