"""What is so between the things of a scene beyond doubt: answers, statements and choices are made of nothing else.

Each function leaves out what people might differ about: two things neither near nor far, two about as close to a third.
"""

from __future__ import annotations

import math

from .phrases import APART, center
from .world import Group, Scene, Thing

NEAR, FAR = 0.33, 0.45  # centres: nearer is near beyond doubt, farther is not
BACK = 0.05  # of two things, neither is left of the other beyond doubt where one is less than this to the right
CLOSER = 1.35  # times as far away is what is clearly not the closest
LARGER = 1.25  # times the area is clearly larger
AHEAD = 0.06  # least distance across to what lies ahead
CONE = 0.6  # rise over run: steeper, and nobody looks at it; what is up to twice as steep is in doubt

FRONTAL = ("boat", "cat", "rabbit")  # are drawn so that people differ about the way they face

RELATIONS = ("near", "to the left of", "to the right of")


def related(a: Thing, b: Thing, relation: str) -> bool | None:
    """Whether `a` is near, to the left of or to the right of `b`; None where people may differ."""
    if relation == "near":
        apart = distance(a, b)
        return True if apart < NEAR else False if apart > FAR else None
    (ax, _), (bx, _) = center(a), center(b)
    right = bx - ax if relation == "to the left of" else ax - bx
    return True if right > APART else False if right < -BACK else None


def moves(group: Group) -> str:
    """What a single thing can be seen to do: "looking" (at something), "going" (some way), or nothing."""
    return "" if group.plural or group.kind.name in FRONTAL else group.kind.moves


def larger(scene: Scene, a: Group, b: Group) -> bool | None:
    """Whether things said to be big are larger than things said to be small; None where their boxes say otherwise, or
    one word is said of both."""
    if a.size == b.size:
        return None
    big, small = (a, b) if a.size == "big" else (b, a)
    least = min(area(scene.things[i]) for i in big.members)
    clear = least > LARGER * max(area(scene.things[i]) for i in small.members)
    return a is big if clear else None


def closest(scene: Scene, thing: int) -> int | None:
    """What is next to a thing: the position in `Scene.things` of what is near and by far the nearest."""
    own = scene.things[thing]
    others = sorted((distance(own, other), i) for i, other in enumerate(scene.things) if i != thing)
    (nearest, found), (second, _) = others[:2]
    return found if nearest < NEAR and second > CLOSER * nearest else None


def only(scene: Scene, thing: int, relation: str) -> int | None:
    """The only thing that stands in a relation to a thing: none of the others might."""
    own = scene.things[thing]
    found = [(i, related(other, own, relation)) for i, other in enumerate(scene.things) if i != thing]
    might = [(i, does) for i, does in found if does is not False]
    return might[0][0] if len(might) == 1 and might[0][1] else None


def ahead(scene: Scene, thing: int) -> int | None:
    """What a thing looks at, or goes towards: the first thing on its way, where there is no doubt about it."""
    own = scene.things[thing]
    ways = [(on_the_way(own, other), distance(own, other), i) for i, other in enumerate(scene.things) if i != thing]
    certain = [(apart, i) for is_there, apart, i in ways if is_there]
    if not certain:
        return None
    nearest, found = min(certain)
    rest = [apart for is_there, apart, i in ways if is_there is not False and i != found]
    return found if all(apart > CLOSER * nearest for apart in rest) else None


def on_the_way(a: Thing, b: Thing) -> bool | None:
    """Whether `b` lies where `a` looks or goes; None where people may differ."""
    run, rise = toward(a, b), abs(center(b)[1] - center(a)[1])
    if run > AHEAD and rise < CONE * run:
        return True
    return False if run < 0 or rise >= 2 * CONE * (run + AHEAD) else None


def toward(a: Thing, b: Thing) -> float:
    """How far `b` lies the way that `a` faces; below 0 behind it."""
    across = center(b)[0] - center(a)[0]
    return across if a.facing == "right" else -across


def distance(a: Thing, b: Thing) -> float:
    return math.dist(center(a), center(b))


def area(thing: Thing) -> float:
    x0, y0, x1, y1 = thing.box
    return (x1 - x0) * (y1 - y0)
