"""Relations of things that are beyond doubt: near, left or right, larger, closest, ahead; distances and areas.

Answers, statements and choices use no others.

Each function leaves out cases where people might differ, such as two things that are neither near nor far.
"""

from __future__ import annotations

import math

from .phrases import APART
from .world import Group, Scene, Thing, center

NEAR, FAR = 0.33, 0.45  # distances of centres: below is near beyond doubt, above is not near beyond doubt
BACK = 0.05  # a thing that is farther right than this is not to the left beyond doubt
CLOSER = 1.35  # a thing this many times as far away is clearly not the closest
LARGER = 1.25  # a thing with this many times the area is clearly larger
AHEAD = 0.06  # least horizontal distance to a thing ahead
CONE = 0.6  # rise over run to a thing ahead; up to twice as steep is in doubt, steeper is not ahead

FRONTAL = ("boat", "cat", "rabbit")  # drawn so that people may differ about the way they face

RELATIONS = ("near", "to the left of", "to the right of")


def related(a: Thing, b: Thing, relation: str) -> bool | None:
    """Whether `a` is near, to the left of or to the right of `b`; None where people may differ."""
    if relation == "near":
        gap = distance(a, b)
        return True if gap < NEAR else False if gap > FAR else None
    (ax, _), (bx, _) = center(a), center(b)
    right = bx - ax if relation == "to the left of" else ax - bx
    return True if right > APART else False if right < -BACK else None


def moves(group: Group) -> str:
    """What a single thing visibly does: "looking" (at something), "going" (some way), or nothing."""
    return "" if group.plural or group.kind.name in FRONTAL else group.kind.moves


def larger(scene: Scene, a: Group, b: Group) -> bool | None:
    """Whether the first group is larger, by the sizes in words; None where the boxes do not confirm the words, or both
    groups have the same size."""
    if a.size == b.size:
        return None
    big, small = (a, b) if a.size == "big" else (b, a)
    least = min(area(scene.things[i]) for i in big.members)
    clear = least > LARGER * max(area(scene.things[i]) for i in small.members)
    return a is big if clear else None


def closest(scene: Scene, thing: int) -> int | None:
    """The thing next to a thing: the position in `Scene.things` of a near thing that is by far the nearest."""
    origin = scene.things[thing]
    distances = sorted((distance(origin, candidate), i) for i, candidate in enumerate(scene.things) if i != thing)
    (nearest, position), (second, _) = distances[:2]
    return position if nearest < NEAR and second > CLOSER * nearest else None


def only_related(scene: Scene, thing: int, relation: str) -> int | None:
    """The only thing that has a relation to a thing; None where another thing might have the relation too."""
    origin = scene.things[thing]
    relations_to_origin = [
        (i, related(candidate, origin, relation)) for i, candidate in enumerate(scene.things) if i != thing
    ]
    possible = [(i, does) for i, does in relations_to_origin if does is not False]
    return possible[0][0] if len(possible) == 1 and possible[0][1] else None


def ahead(scene: Scene, thing: int) -> int | None:
    """The thing that a thing looks at, or goes towards: the first on its way; None in doubt."""
    origin = scene.things[thing]
    ways = [
        (on_the_way(origin, candidate), distance(origin, candidate), i)
        for i, candidate in enumerate(scene.things)
        if i != thing
    ]
    certain = [(apart, i) for is_there, apart, i in ways if is_there]
    if not certain:
        return None
    nearest, position = min(certain)
    rest = [apart for is_there, apart, i in ways if is_there is not False and i != position]
    return position if all(apart > CLOSER * nearest for apart in rest) else None


def on_the_way(a: Thing, b: Thing) -> bool | None:
    """Whether `b` is where `a` looks or goes; None where people may differ."""
    run, rise = toward(a, b), abs(center(b)[1] - center(a)[1])
    if run > AHEAD and rise < CONE * run:
        return True
    return False if run < 0 or rise >= 2 * CONE * (run + AHEAD) else None


def toward(a: Thing, b: Thing) -> float:
    """The distance of `b` in the direction that `a` faces; negative behind `a`."""
    across = center(b)[0] - center(a)[0]
    return across if a.facing == "right" else -across


def distance(a: Thing, b: Thing) -> float:
    """The distance of the centres of two things."""
    return math.dist(center(a), center(b))


def area(thing: Thing) -> float:
    """The area of a thing's box."""
    x0, y0, x1, y1 = thing.box
    return (x1 - x0) * (y1 - y0)
