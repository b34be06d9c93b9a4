"""Writes statements about two pictures, each true of two pairs of four: the drawn version of NLVR2.

Statements are about how many things of two kinds each picture has, and of which colour. So a set of pairs is planned
first, and other things are added to its scenes afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from mmgen_scenes.phrases import COUNTS
from mmgen_scenes.world import KINDS, MOST, SIZES, Kind, Look

PAIRS = 4  # pairs per statement; the statement is true of half of them
FORMS = 14  # forms of statements
PATIENCE = 2000  # plans tried before other forms are drawn
MANY = (0.3, 0.35, 0.35)  # probabilities that a picture has none, one and two of the first kind
ONE_COLOR = 0.65  # probability that things of the first kind have the first of their two colours
ALSO = 0.5  # probability that a picture has one thing of the second kind

Count = Callable[..., int]  # (kind, colour where colour matters) -> how many a picture has
# (left picture, right picture) -> whether a statement is true of them; None where people may differ
Holds = Callable[[Count, Count], int | None]


@dataclass(frozen=True)
class Plan:
    """The two kinds that a set of pairs is about, and the things of these kinds in each picture; pictures 0 and 1 are
    the first pair."""

    kinds: tuple[str, str]
    pictures: tuple[tuple[Look, ...], ...]

    def true_of(self, holds: Holds) -> list[bool]:
        """Whether a statement is true of each pair; False for all where people may differ about one."""
        counts = [_counter(looks) for looks in self.pictures]
        values = [holds(left, right) for left, right in zip(counts[::2], counts[1::2], strict=True)]
        return [False] * PAIRS if None in values else [bool(value) for value in values]


def write(rng: Random, count: int) -> tuple[Plan, list[tuple[str, list[bool]]]]:
    """A plan, and `count` different statements, each with its truth for every pair; it is true of half of them. All
    forms of statements are equally common: plans are tried until one fits the forms that were drawn."""
    while True:
        forms = rng.sample(range(FORMS), count)
        for _ in range(PATIENCE):
            plan, colors = _plan(rng)
            statements = list(_statements(rng, plan.kinds, colors))
            truth = {form: plan.true_of(statements[form][1]) for form in forms}
            if all(sum(true) == PAIRS // 2 for true in truth.values()):
                return plan, [(statements[form][0], true) for form, true in truth.items()]


def _plan(rng: Random) -> tuple[Plan, tuple[str, str]]:
    """A plan, and the two colours of its first kind."""
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
    return Plan((first.name, second.name), tuple(pictures)), (main_color, rare_color)


def _fit_together(first: Kind, second: Kind) -> bool:
    """Whether two of the first kind and one of the second fit into a scene."""
    return first.zone != second.zone or MOST[first.zone] > 2


def _statements(rng: Random, kinds: tuple[str, str], colors: tuple[str, str]) -> Iterator[tuple[str, Holds]]:
    """All statements about two kinds, each with a function that decides whether it is true of two pictures."""
    kind, second_kind = kinds
    many, (red, blue) = KINDS[kind].plural, colors
    a, b, a_red, a_blue = _a(kind), _a(second_kind), _a(f"{red} {kind}"), _a(f"{blue} {kind}")
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


def _counter(looks: tuple[Look, ...]) -> Count:
    def count(kind: str, color: str = "") -> int:
        return sum(look.count for look in looks if look.kind == kind and color in ("", look.color))

    return count


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
