"""Writes the statements of drawn NLVR2, each true of two pairs of four pictures; plans these pictures.

Statements are about how many things of two kinds each picture has, and of which colour. So a set of pairs is planned
first, and other things are added to its scenes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from random import Random

from mmgen_scenes.phrases import COUNTS
from mmgen_scenes.world import KINDS, MOST, SIZES, Kind, Look

from .drawn_forms import FORMS

PAIRS = 4  # pairs per statement; the statement is true of half of them
PATIENCE = 2000  # plans tried before other forms are drawn
MANY = (0.3, 0.35, 0.35)  # probabilities that a picture has none, one and two of the first kind
ONE_COLOR = 0.65  # probability that things of the first kind have the first of their two colours
ALSO = 0.5  # probability that a picture has one thing of the second kind

Count = Callable[..., int]  # (kind, colour where colour matters) -> how many a picture has
# (left picture, right picture) -> whether a statement is true of them; None where people may differ
Holds = Callable[[Count, Count], int | None]


@dataclass(frozen=True)
class Plan:
    """The two kinds that a set of pairs is about, two colours of the first, and the things of these kinds in each
    picture; pictures 0 and 1 are the first pair."""

    kinds: tuple[str, str]
    colors: tuple[str, str]
    pictures: tuple[tuple[Look, ...], ...]

    def true_of(self, holds: Holds) -> list[bool]:
        """Whether a statement is true of each pair; False for all where people may differ about one."""
        counts = [_counter_of(looks) for looks in self.pictures]
        values = [holds(left, right) for left, right in zip(counts[::2], counts[1::2], strict=True)]
        return [False] * PAIRS if None in values else [bool(value) for value in values]

    def pairings(self, holds: Holds) -> list[Pair]:
        """Any two pictures, and whether a statement is true of them; without those about which people may differ."""
        counts = [_counter_of(looks) for looks in self.pictures]
        pairs = permutations(range(len(counts)), 2)
        values = [(left, right, holds(counts[left], counts[right])) for left, right in pairs]
        return [(left, right, bool(value)) for left, right, value in values if value is not None]


@dataclass(frozen=True)
class Statement:
    """A statement of a form, and a function that decides its truth."""

    form: str
    text: str
    holds: Holds


Pair = tuple[int, int, bool]  # the left picture, the right picture, and whether a statement is true of them


def write(rng: Random, count: int) -> tuple[Plan, list[tuple[Statement, list[Pair]]]]:
    """A plan, and `count` different statements with their truth for every pair; it is true of half of them. All forms
    of statements are equally common: plans are tried until one fits the forms that were drawn."""
    while True:
        forms = rng.sample(range(len(FORMS)), count)
        for _ in range(PATIENCE):
            plan = _plan_pictures(rng)
            statements = _write_statements(rng, plan)
            truth = {form: plan.true_of(statements[form].holds) for form in forms}
            if all(sum(true) == PAIRS // 2 for true in truth.values()):
                pairs = {
                    form: [(2 * place, 2 * place + 1, true) for place, true in enumerate(values)]
                    for form, values in truth.items()
                }
                return plan, [(statements[form], pairs[form]) for form in forms]


def write_others(rng: Random, plan: Plan, count: int, forms: Sequence[str]) -> list[Statement]:
    """At most `count` different statements about the pictures of a plan, of these forms: statements that are true of
    some two pictures and false of others."""
    statements = [statement for statement in _write_statements(rng, plan) if statement.form in forms]
    usable = [statement for statement in statements if draw_pairs(rng, plan, statement, 2)]
    return rng.sample(usable, min(count, len(usable)))


def draw_pairs(rng: Random, plan: Plan, statement: Statement, count: int, without: Sequence[Pair] = ()) -> list[Pair]:
    """At most `count` pairs of any two pictures of a plan, beside those of `without`; the statement is true of half."""
    known = {(left, right) for left, right, _ in without}
    pairs = [pair for pair in plan.pairings(statement.holds) if pair[:2] not in known]
    by_truth = [[pair for pair in pairs if pair[2] is truth] for truth in (False, True)]
    half = min(count // 2, *map(len, by_truth))
    return [pair for group in by_truth for pair in rng.sample(group, half)]


def _plan_pictures(rng: Random) -> Plan:
    kinds = [kind for kind in KINDS.values() if kind.name != "sun"]
    first = rng.choice(kinds)
    second = rng.choice([kind for kind in kinds if kind is not first and _fit_together(first, kind)])
    main_color, rare_color = rng.sample(first.colors, 2)
    pictures = []
    for _ in range(2 * PAIRS):
        (count,) = rng.choices(range(len(MANY)), MANY)
        looks = []
        if count:
            looks.append(
                Look(first.name, main_color if rng.random() < ONE_COLOR else rare_color, rng.choice(SIZES), count)
            )
        if rng.random() < ALSO:
            looks.append(Look(second.name, rng.choice(second.colors), rng.choice(SIZES)))
        pictures.append(tuple(looks))
    return Plan((first.name, second.name), (main_color, rare_color), tuple(pictures))


def _fit_together(first: Kind, second: Kind) -> bool:
    """Whether two of the first kind and one of the second fit into a scene."""
    return first.zone != second.zone or MOST[first.zone] > 2


def _write_statements(rng: Random, plan: Plan) -> list[Statement]:
    """A statement of every form about the kinds of a plan."""
    texts = _statements_of_forms(rng, plan.kinds, plan.colors)
    return [Statement(form, text, holds) for form, (text, holds) in zip(FORMS, texts, strict=True)]


def _statements_of_forms(rng: Random, kinds: tuple[str, str], colors: tuple[str, str]) -> Iterator[tuple[str, Holds]]:
    """A statement of each of `FORMS` about two kinds, and a function that decides its truth for two pictures."""
    kind, second_kind = kinds
    many, (red, blue) = KINDS[kind].plural, colors
    a, b, a_red, a_blue = (
        with_article(kind),
        with_article(second_kind),
        with_article(f"{red} {kind}"),
        with_article(f"{blue} {kind}"),
    )
    number = rng.choice(tuple(COUNTS))
    first, second = rng.choice((("left", "right"), ("right", "left")))
    turned = first == "right"
    yield f"the {first} picture shows {a}", lambda x, y: (y if turned else x)(kind)
    yield f"the {first} picture shows {a_red}", lambda x, y: (y if turned else x)(kind, red)
    yield f"both pictures show {a}", lambda x, y: x(kind) and y(kind)
    yield f"both pictures show {a_red}", lambda x, y: x(kind, red) and y(kind, red)
    yield f"neither picture shows {a_red}", lambda x, y: not x(kind, red) and not y(kind, red)
    yield f"exactly one picture shows {a}", lambda x, y: bool(x(kind)) != bool(y(kind))
    yield f"exactly one picture shows {a_red}", lambda x, y: bool(x(kind, red)) != bool(y(kind, red))
    yield (
        f"exactly one picture shows {a} and {b}",
        lambda x, y: bool(x(kind) and x(second_kind)) != bool(y(kind) and y(second_kind)),
    )
    yield f"at least one picture shows two {many}", lambda x, y: 2 in (x(kind), y(kind))
    yield f"there are exactly {COUNTS[number]} {many} in the two pictures", lambda x, y: x(kind) + y(kind) == number
    yield (
        f"there are more {many} in the {first} picture than in the {second} picture",
        lambda x, y: y(kind) > x(kind) if turned else x(kind) > y(kind),
    )
    yield (
        f"there are as many {many} in the left picture as in the right picture",
        lambda x, y: x(kind) == y(kind) if x(kind) or y(kind) else None,
    )
    yield (
        f"the {first} picture shows {a} and the {second} picture shows {b}",
        lambda x, y: y(kind) and x(second_kind) if turned else x(kind) and y(second_kind),
    )
    yield (
        f"one picture shows {a_red} and the other picture shows {a_blue}",
        lambda x, y: (x(kind, red) and y(kind, blue)) or (x(kind, blue) and y(kind, red)),
    )


def _counter_of(looks: tuple[Look, ...]) -> Count:
    """A function that counts the things of a kind and colour in a planned picture."""

    def count(kind: str, color: str = "") -> int:
        return sum(look.count for look in looks if look.kind == kind and color in ("", look.color))

    return count


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
