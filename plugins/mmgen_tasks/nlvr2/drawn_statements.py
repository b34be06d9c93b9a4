"""Writes statements about two pictures, each true of two pairs of four: the drawn version of NLVR2.

Statements are about how many things of two kinds are where, and of which colour. So a set of pairs is planned first,
and its scenes are furnished afterwards with other things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from mmgen_scenes.phrases import COUNTS
from mmgen_scenes.world import KINDS, MOST, SIZES, Kind, Look

PAIRS = 4  # of a statement; it is true of half of them
FORMS = 14  # of statements
PATIENCE = 2000  # plans thought of, before other forms are drawn
MANY = (0.3, 0.35, 0.35)  # how often a picture has none, one and two of the first kind
ONE_COLOR = 0.65  # how often those are of the first of their two colours
ALSO = 0.5  # how often it has one of the second

Count = Callable[..., int]  # (kind, colour where it matters) -> how many a picture has
Holds = Callable[[Count, Count], int | None]  # of a left and a right picture; None where people may differ


@dataclass(frozen=True)
class Plan:
    """The topics of a set of pairs, `kinds`, and what each picture has of them; pictures 0 and 1 are the first pair."""

    kinds: tuple[str, str]
    pictures: tuple[tuple[Look, ...], ...]

    def true_of(self, holds: Holds) -> list[bool]:
        """Of which pairs a statement is true; of none where people may differ about one."""
        counts = [_counter(looks) for looks in self.pictures]
        told = [holds(left, right) for left, right in zip(counts[::2], counts[1::2], strict=True)]
        return [False] * PAIRS if None in told else [bool(one) for one in told]


def write(rng: Random, count: int) -> tuple[Plan, list[tuple[str, list[bool]]]]:
    """A plan, and `count` different statements, each with whether it is true of each pair: of half of them. All forms
    of statements are as common: plans are thought of until they fit those that were drawn."""
    while True:
        forms = rng.sample(range(FORMS), count)
        for _ in range(PATIENCE):
            plan, colors = _plan(rng)
            statements = list(_statements(rng, plan.kinds, colors))
            truth = {form: plan.true_of(statements[form][1]) for form in forms}
            if all(sum(true) == PAIRS // 2 for true in truth.values()):
                return plan, [(statements[form][0], true) for form, true in truth.items()]


def _plan(rng: Random) -> tuple[Plan, tuple[str, str]]:
    """With the two colours that things of the first kind have."""
    kinds = [kind for kind in KINDS.values() if kind.name != "sun"]
    first = rng.choice(kinds)
    second = rng.choice([kind for kind in kinds if kind is not first and _fit(first, kind)])
    one, other = rng.sample(first.colors, 2)
    pictures = []
    for _ in range(2 * PAIRS):
        (count,) = rng.choices(range(len(MANY)), MANY)
        looks = []
        if count:
            looks.append(Look(first.name, one if rng.random() < ONE_COLOR else other, rng.choice(SIZES), count))
        if rng.random() < ALSO:
            looks.append(Look(second.name, rng.choice(second.colors), rng.choice(SIZES)))
        pictures.append(tuple(looks))
    return Plan((first.name, second.name), tuple(pictures)), (one, other)


def _fit(first: Kind, second: Kind) -> bool:
    """Whether two of the first kind and one of the second fit into a scene."""
    return first.zone != second.zone or MOST[first.zone] > 2


def _statements(rng: Random, kinds: tuple[str, str], colors: tuple[str, str]) -> Iterator[tuple[str, Holds]]:
    """All statements about two kinds, and when they hold of a left and a right picture."""
    one, other = kinds
    many, (red, blue) = KINDS[one].plural, colors
    a, b, a_red, a_blue = _a(one), _a(other), _a(f"{red} {one}"), _a(f"{blue} {one}")
    number = rng.choice(tuple(COUNTS))
    first, second = rng.choice((("left", "right"), ("right", "left")))
    turned = first == "right"
    yield f"the {first} picture shows {a}", lambda x, y: (y if turned else x)(one)
    yield f"the {first} picture shows {a_red}", lambda x, y: (y if turned else x)(one, red)
    yield f"both pictures show {a}", lambda x, y: x(one) and y(one)
    yield f"both pictures show {a_red}", lambda x, y: x(one, red) and y(one, red)
    yield f"neither picture shows {a_red}", lambda x, y: not x(one, red) and not y(one, red)
    yield f"exactly one picture shows {a}", lambda x, y: bool(x(one)) != bool(y(one))
    yield f"exactly one picture shows {a_red}", lambda x, y: bool(x(one, red)) != bool(y(one, red))
    yield f"exactly one picture shows {a} and {b}", lambda x, y: bool(x(one) and x(other)) != bool(y(one) and y(other))
    yield f"at least one picture shows two {many}", lambda x, y: 2 in (x(one), y(one))
    yield f"there are exactly {COUNTS[number]} {many} in the two pictures", lambda x, y: x(one) + y(one) == number
    yield (
        f"there are more {many} in the {first} picture than in the {second} picture",
        lambda x, y: y(one) > x(one) if turned else x(one) > y(one),
    )
    yield (
        f"there are as many {many} in the left picture as in the right picture",
        lambda x, y: x(one) == y(one) if x(one) or y(one) else None,
    )
    yield (
        f"the {first} picture shows {a} and the {second} picture shows {b}",
        lambda x, y: y(one) and x(other) if turned else x(one) and y(other),
    )
    yield (
        f"one picture shows {a_red} and the other picture shows {a_blue}",
        lambda x, y: (x(one, red) and y(one, blue)) or (x(one, blue) and y(one, red)),
    )


def _counter(looks: tuple[Look, ...]) -> Count:
    def count(kind: str, color: str = "") -> int:
        return sum(look.count for look in looks if look.kind == kind and color in ("", look.color))

    return count


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
