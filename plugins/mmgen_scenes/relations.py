"""Relations of things that are beyond doubt: near, left or right, larger, closest, ahead.

Captions, answers, statements and choices use no others. Each function leaves out cases where people might differ, such
as two things that are neither near nor far. Things are named by their position in `things`, those of a scene.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from .world import Thing, area

NEAR, FAR = 0.36, 0.45  # distances of centres: below is near beyond doubt, above is not near beyond doubt
APART, BACK = 0.15, 0.05  # farther left is to the left beyond doubt; farther right is not to the left beyond doubt
CLOSER = 1.35  # a thing this many times as far away is clearly not the closest
LARGER = 1.25  # a thing with this many times the area is clearly larger
AHEAD = 0.06  # least horizontal distance to a thing ahead
CONE = 0.6  # rise over run to a thing ahead; up to twice as steep is in doubt, steeper is not ahead

FRONTAL = ("boat", "cat", "rabbit")  # drawn so that people may differ about the way they face

RELATIONS = ("near", "to the left of", "to the right of")

Things = Sequence[Thing]


def related(a: Thing, b: Thing, relation: str) -> bool | None:
    """Whether `a` has one of RELATIONS to `b`; None where people may differ."""
    if relation == "near":
        gap = distance(a, b)
        return True if gap < NEAR else False if gap > FAR else None
    right = b.center[0] - a.center[0] if relation == "to the left of" else a.center[0] - b.center[0]
    return True if right > APART else False if right < -BACK else None


def larger(a: Things, b: Things) -> bool | None:
    """Whether things are larger than others, by the sizes in words; None where sizes are mixed or equal, or the boxes
    do not confirm the words."""
    sizes = [{thing.size for thing in things} for things in (a, b)]
    if sizes not in ([{"big"}, {"small"}], [{"small"}, {"big"}]):
        return None
    big, small = (a, b) if sizes[0] == {"big"} else (b, a)
    return (
        big is a if min(area(thing.box) for thing in big) > LARGER * max(area(thing.box) for thing in small) else None
    )


def closest(things: Things, thing: int) -> int | None:
    """The thing next to a thing: a near thing that is by far the nearest."""
    gaps = sorted((distance(things[thing], candidate), i) for i, candidate in enumerate(things) if i != thing)
    (nearest, position), (second, _) = gaps[:2]
    return position if nearest < NEAR and second > CLOSER * nearest else None


def ahead(things: Things, thing: int) -> int | None:
    """The thing that a thing looks at, or goes towards: the first on its way; None in doubt."""
    origin = things[thing]
    ways = [(on_the_way(origin, other), distance(origin, other), i) for i, other in enumerate(things) if i != thing]
    certain = [(gap, i) for is_there, gap, i in ways if is_there]
    if not certain:
        return None
    nearest, position = min(certain)
    rest = [gap for is_there, gap, i in ways if is_there is not False and i != position]
    return position if all(gap > CLOSER * nearest for gap in rest) else None


def on_the_way(a: Thing, b: Thing) -> bool | None:
    """Whether `b` is where `a` looks or goes; None where people may differ."""
    across, rise = b.center[0] - a.center[0], abs(b.center[1] - a.center[1])
    run = across if a.facing == "right" else -across
    if run > AHEAD and rise < CONE * run:
        return True
    return False if run < 0 or rise >= 2 * CONE * (run + AHEAD) else None


def distance(a: Thing, b: Thing) -> float:
    """The distance of the centres of two things."""
    return math.dist(a.center, b.center)
