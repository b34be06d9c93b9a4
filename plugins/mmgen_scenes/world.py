"""The world: kinds of things, their looks and boxes, a thing from its facts, and how a scene is put together at random.

Boxes are (x0, y0, x1, y1) relative to the picture's side, y downwards. Nothing here draws or writes text.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from mmgen_vision.boxes import Box

COLORS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "black", "brown")
SIZES = ("small", "big")
GROUNDS = ("grass", "sand", "snow")
SIDES = ("left", "right")


SIDE_LENGTH = {"small": 0.165, "big": 0.275}  # side of a square of the area of the thing's box, before the kind's scale
MOST = {"sky": 3, "water": 2, "ground": 5}  # things that fit into a zone
HORIZON = (0.40, 0.45)
WATER_HEIGHT = 0.18
FEWEST_GROUPS = 3  # two are captioned, and the rest can be discovered
ONE_SIZE = 0.7  # probability that several things that do not all look alike have one size
TWINS = 0.35  # probability that two of them look alike
MOST_HIDDEN = 0.06  # greatest share of the smaller of two boxes that the other may cover
ATTEMPTS = 30  # places tried for a thing before the scene starts over


@dataclass(frozen=True)
class Kind:
    """A kind of thing. `moves`: what it visibly does, "looking" (at something), "going" (some way), or nothing."""

    name: str
    plural: str
    zone: str  # "sky", "water" or "ground"
    sort: str
    colors: tuple[str, ...]
    aspect: float  # width over height
    scale: float
    moves: str


@dataclass(frozen=True)
class Thing:
    """One thing in a scene. `place` is "sky", "water" or the scene's ground; `side` "left", "right" or "" (between)."""

    kind: str
    color: str
    size: str
    place: str
    side: str
    facing: str  # "left" or "right"
    box: Box

    @property
    def center(self) -> tuple[float, float]:
        """x and y of the centre of the box."""
        x0, y0, x1, y1 = self.box
        return (x0 + x1) / 2, (y0 + y1) / 2

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Thing:
        """A thing from the facts of an example, which may have more keys."""
        return cls(**{name: facts[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class Look:
    """Things that a scene must have: `count` things of a kind, of one colour and size."""

    kind: str
    color: str
    size: str
    count: int = 1


@dataclass(frozen=True)
class Group:
    """One to three things of one kind, colour and size; all of their kind unless `sample` was given looks."""

    kind: Kind
    color: str
    size: str
    place: str
    members: tuple[int, ...]  # indices into Scene.things

    @property
    def plural(self) -> bool:
        return len(self.members) > 1


@dataclass(frozen=True)
class Scene:
    """A scene. `look` seeds the decoration: hills, light, tufts of grass."""

    id: str
    ground: str  # "grass", "sand" or "snow"
    horizon: float
    water: bool
    look: int
    things: tuple[Thing, ...] = ()
    groups: tuple[Group, ...] = ()

    def members(self, group: Group) -> list[Thing]:
        """The things of a group."""
        return [self.things[i] for i in group.members]


def _read_kinds() -> Iterator[Kind]:
    """The rows of `kinds.txt`."""
    several = {"bright": COLORS[:6], "any": COLORS[:8], "fur": ("orange", "white", "black", "brown")}
    for line in Path(__file__).with_name("kinds.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, plural, zone, sort, aspect, scale, moves, *words = line.split()
            colors = tuple(color for word in words for color in several.get(word, (word,)))
            yield Kind(name, plural, zone, sort, colors, float(aspect), float(scale), moves.strip("-"))


KINDS = {kind.name: kind for kind in _read_kinds()}
PLURAL = {kind.plural: kind.name for kind in KINDS.values()}
SORT = {kind.name: kind.sort for kind in KINDS.values()}
SORTS = {sort: tuple(kind for kind in KINDS if SORT[kind] == sort) for sort in dict.fromkeys(SORT.values())}


def sample(
    rng: Random, name: str, fewest: int, most: int, looks: Sequence[Look] = (), never: Collection[str] = ()
) -> Scene:
    """A scene with the id `name` and `fewest` to `most` things, all drawn from `rng`. The scene has the things of
    `looks`, nothing else of their kinds, and nothing of the kinds `never`."""
    while True:
        empty = Scene(
            id=name,
            ground=rng.choice(GROUNDS),
            horizon=round(rng.uniform(*HORIZON), 3),
            water=rng.random() < 0.6,
            look=rng.randrange(2**31),
        )
        scene = _fill(rng, empty, rng.randint(fewest, most), looks, never)
        if scene is not None:
            return scene


def sample_unlike_looks(rng: Random, count: int) -> list[Look]:
    """`count` things of one kind that do not all look alike; two of them may. Mostly their sizes are equal, so that
    boxes alone do not distinguish them."""
    kind = rng.choice([kind for kind in KINDS.values() if MOST[kind.zone] >= count and kind.name != "sun"])
    twins = count > 2 and rng.random() < TWINS
    different = count - twins
    if rng.random() < ONE_SIZE and different <= len(kind.colors):
        size = rng.choice(SIZES)
        looks = [Look(kind.name, color, size) for color in rng.sample(kind.colors, different)]
    else:
        colors = rng.sample(kind.colors, rng.randint(2, min(count, len(kind.colors))))
        looks = rng.sample([Look(kind.name, color, size) for color in colors for size in SIZES], different)
    return [replace(look, count=1 + (twins and place == 0)) for place, look in enumerate(looks)]


def _fill(rng: Random, scene: Scene, thing_count: int, looks: Sequence[Look], never: Collection[str]) -> Scene | None:
    """The scene with `thing_count` things in it, `looks` first, no other kind in two groups; None if things do not
    fit."""
    room = dict(MOST, water=MOST["water"] if scene.water else 0)
    kinds = list(KINDS.values())
    rng.shuffle(kinds)
    taken = {*never, *(look.kind for look in looks)}
    required = [(KINDS[look.kind], look) for look in looks]
    for kind, look in [*required, *((kind, None) for kind in kinds if kind.name not in taken)]:
        count = look.count if look else min(rng.choices((1, 2, 3), (80, 15, 5))[0], thing_count - len(scene.things))
        if kind.name == "sun":
            count = min(count, 1)
        if count <= 0:  # all things are there
            return scene if len(scene.groups) >= FEWEST_GROUPS else None
        if count > room[kind.zone]:
            if look:
                return None
            continue
        color, size = (look.color, look.size) if look else (rng.choice(kind.colors), rng.choice(SIZES))
        grown = _with_group(rng, scene, kind, color, size, count)
        if grown is None:
            return None
        scene = grown
        room[kind.zone] -= count
    return None


def _with_group(rng: Random, scene: Scene, kind: Kind, color: str, size: str, count: int) -> Scene | None:
    """The scene with `count` more things, all alike; None if they do not fit."""
    place = scene.ground if kind.zone == "ground" else kind.zone
    things = [*scene.things]
    for _ in range(count):
        box = _find_free_box(rng, scene, kind, size, things)
        if box is None:
            return None
        things.append(Thing(kind.name, color, size, place, _side_of_box(box), rng.choice(SIDES), box))
    group = Group(kind, color, size, place, tuple(range(len(scene.things), len(things))))
    return replace(scene, things=tuple(things), groups=(*scene.groups, group))


def _find_free_box(rng: Random, scene: Scene, kind: Kind, size: str, things: list[Thing]) -> Box | None:
    """A free box for one more thing."""
    side = SIDE_LENGTH[size] * kind.scale * rng.uniform(0.94, 1.06)
    width, height = side * math.sqrt(kind.aspect), side / math.sqrt(kind.aspect)
    shore = scene.horizon + WATER_HEIGHT * scene.water
    lowest, highest = {  # the range of the bottom of the box
        "sky": (0.02 + height, scene.horizon - 0.01),
        "water": (scene.horizon + 0.08, shore - 0.03),
        "ground": (shore + 0.06, 0.97),
    }[kind.zone]
    for _ in range(ATTEMPTS):
        x0, y1 = rng.uniform(0.015, 0.985 - width), rng.uniform(lowest, highest)
        if (top := round(y1 - height, 4)) >= 0.01:
            box = (round(x0, 4), top, round(x0 + width, 4), round(y1, 4))
            if all(overlap_share(box, thing.box) <= MOST_HIDDEN for thing in things):
                return box
    return None


def overlap_share(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    """Intersection of two boxes as a share of the smaller one."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / min(area(a), area(b))


def area(box: tuple[float, ...]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _side_of_box(box: tuple[float, ...]) -> str:
    x = (box[0] + box[2]) / 2
    return "left" if x < 0.4 else "right" if x > 0.6 else ""
