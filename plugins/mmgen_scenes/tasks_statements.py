"""The data sets `scene_pairs` (NLVR2, drawn: statements about two scenes) and `scene_statements` (about one scene)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from random import Random
from typing import NamedTuple

from mmgen_vision.truths import LABELS

from mmgen.examples import All, Example

from . import ScenePairs, SceneStatements
from .configs import STATEMENTS
from .drawn import DrawnDataset, SceneSet, plain_scene, things
from .phrases import COUNTS
from .relations import related
from .world import KINDS, MOST, SIZES, SORT, SORTS, Group, Look, Scene, sample

PAIRS = 4  # pairs per statement that is scored
PATIENCE = 2000  # plans tried before other forms are drawn
MANY = (0.3, 0.35, 0.35)  # probabilities that a picture has none, one and two of the first kind
ONE_COLOR = 0.65  # probability that things of the first kind have the first of their two colours
ALSO = 0.5  # probability that a picture has one thing of the second kind

Looks = tuple[Look, ...]  # what a picture must have
Count = Callable[..., int]  # (kind, colour where colour matters) -> how many a picture has
# (left picture, right picture) -> whether a statement is true of them; None where people may differ
Holds = Callable[[Count, Count], int | None]
Pair = tuple[int, int, bool]  # the left picture, the right picture, and whether a statement is true of them
Statement = tuple[str, str, list[Pair]]  # its form, its text, and pairs of pictures that it is about
Writer = Callable[[Random, Scene], Iterator[tuple[str, str]]]  # gives true statements with false ones


class Plan(NamedTuple):
    """The two kinds that a set of pictures is about, two colours of the first, and the things of these kinds in each
    picture. Other things are added to the scenes afterwards."""

    kinds: tuple[str, str]
    colors: tuple[str, str]
    pictures: tuple[Looks, ...]

    def pairs(self, rng: Random, holds: Holds, count: int) -> list[Pair]:
        """At most `count` pairs of any two pictures; a statement is true of half of them. Without pairs about which
        people may differ."""
        counts = [_counter_of(looks) for looks in self.pictures]
        known = ((a, b, holds(counts[a], counts[b])) for a, b in permutations(range(len(counts)), 2))
        pairs = [(a, b, bool(value)) for a, b, value in known if value is not None]
        by_truth = [[pair for pair in pairs if pair[2] is truth] for truth in (False, True)]
        half = min(count // 2, *map(len, by_truth))
        return [pair for group in by_truth for pair in rng.sample(group, half)]


class DrawnPairs(DrawnDataset):
    """Examples of a `ScenePairs` config: a statement about a pair of scenes. Names follow NLVR2: an example is
    split-set-pair-statement, and pictures are split-set-K-img0 and -img1.

    inputs   "image": the names of both scenes, the left one first; "statement"
    labels   "truth"
    facts    group: the statement and its set; form: the statement's; things: those of the left and of the right scene
    """

    name = "pairs of drawn scenes"
    config: ScenePairs

    def make(self, split: str, i: int) -> SceneSet:
        config, rng = self.config, Random(f"{self.config.seed}/{split}/{i}/pairs")
        count = config.pairings if split == "train" else PAIRS
        plan, written = _plan_statements(rng, config.statements, count)
        scenes = tuple(
            sample(rng, f"{split}-{i}-{k // 2}-img{k % 2}", *config.things, looks, plan.kinds)
            for k, looks in enumerate(plan.pictures)
        )
        if config.forms != STATEMENTS:  # about the same pictures, which may fit fewer statements of these forms
            forms = rng.sample(config.forms, min(config.statements, len(config.forms)))
            written = [statement for statement in _write(rng, plan, forms, count) if len(statement[2]) >= PAIRS]
        known = [things(scene) for scene in scenes]
        examples = tuple(
            Example(
                f"{split}-{i}-{pair}-{number}",
                {"image": All((scenes[left].id, scenes[right].id)), "statement": text},
                facts={"group": f"{split}-{i}--{number}", "form": form, "things": [known[left], known[right]]},
                labels={"truth": true},
            )
            for number, (form, text, pairs) in enumerate(written)
            for pair, (left, right, true) in enumerate(pairs)
        )
        shown = {key for example in examples for key in example.shown("image")}
        return tuple(scene for scene in scenes if scene.id in shown), examples

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"truth": LABELS}


def _plan_statements(rng: Random, count: int, pairs: int) -> tuple[Plan, list[Statement]]:
    """A plan, and statements of `count` forms with their pairs. All forms are equally common: plans are tried until one
    fits the forms that were drawn."""
    while True:
        chosen = rng.sample(STATEMENTS, count)
        for _ in range(PATIENCE):
            plan = _plan_pictures(rng)
            written = _write(rng, plan, chosen, pairs)
            if all(len(its_pairs) >= PAIRS for _, _, its_pairs in written):
                return plan, written


def _write(rng: Random, plan: Plan, forms: Sequence[str], pairs: int) -> list[Statement]:
    """A statement of each form about a plan's pictures."""
    texts = dict(zip(STATEMENTS, _statements(rng, plan.kinds, plan.colors), strict=True))
    return [(form, texts[form][0], plan.pairs(rng, texts[form][1], pairs)) for form in forms]


def _plan_pictures(rng: Random) -> Plan:
    kinds = [kind for kind in KINDS.values() if kind.name != "sun"]
    first = rng.choice(kinds)
    fitting = [kind for kind in kinds if kind is not first and (kind.zone != first.zone or MOST[kind.zone] > 2)]
    second = rng.choice(fitting)
    colors = rng.sample(first.colors, 2)
    pictures = []
    for _ in range(2 * PAIRS):
        (count,) = rng.choices(range(len(MANY)), MANY)
        color = colors[rng.random() >= ONE_COLOR]
        looks = [Look(first.name, color, rng.choice(SIZES), count)] if count else []
        if rng.random() < ALSO:
            looks.append(Look(second.name, rng.choice(second.colors), rng.choice(SIZES)))
        pictures.append(tuple(looks))
    return Plan((first.name, second.name), (colors[0], colors[1]), tuple(pictures))


def _statements(rng: Random, kinds: tuple[str, str], colors: tuple[str, str]) -> Iterator[tuple[str, Holds]]:
    """A statement of each of `STATEMENTS` about two kinds, and a function that decides its truth for two pictures."""
    kind, second = kinds
    many, (red, blue) = KINDS[kind].plural, colors
    a, b, a_red, a_blue = map(with_article, (kind, second, f"{red} {kind}", f"{blue} {kind}"))
    number = rng.choice(tuple(COUNTS))
    sides = rng.choice((("left", "right"), ("right", "left")))
    one, other = sides

    def turned(holds: Holds) -> Holds:
        return holds if one == "left" else lambda x, y: holds(y, x)

    yield f"the {one} picture shows {a}", turned(lambda x, y: x(kind))
    yield f"the {one} picture shows {a_red}", turned(lambda x, y: x(kind, red))
    yield f"both pictures show {a}", lambda x, y: x(kind) and y(kind)
    yield f"both pictures show {a_red}", lambda x, y: x(kind, red) and y(kind, red)
    yield f"neither picture shows {a_red}", lambda x, y: not x(kind, red) and not y(kind, red)
    yield f"exactly one picture shows {a}", lambda x, y: bool(x(kind)) != bool(y(kind))
    yield f"exactly one picture shows {a_red}", lambda x, y: bool(x(kind, red)) != bool(y(kind, red))
    yield (
        f"exactly one picture shows {a} and {b}",
        lambda x, y: bool(x(kind) and x(second)) != bool(y(kind) and y(second)),
    )
    yield f"at least one picture shows two {many}", lambda x, y: 2 in (x(kind), y(kind))
    yield (
        f"there are exactly {COUNTS[number]} {many} in the two pictures",
        lambda x, y: x(kind) + y(kind) == number,
    )
    yield (
        f"there are more {many} in the {one} picture than in the {other} picture",
        turned(lambda x, y: x(kind) > y(kind)),
    )
    yield (
        f"there are as many {many} in the left picture as in the right picture",
        lambda x, y: x(kind) == y(kind) if x(kind) or y(kind) else None,
    )
    yield f"the {one} picture shows {a} and the {other} picture shows {b}", turned(lambda x, y: x(kind) and y(second))
    yield (
        f"one picture shows {a_red} and the other picture shows {a_blue}",
        lambda x, y: (x(kind, red) and y(kind, blue)) or (x(kind, blue) and y(kind, red)),
    )


def _counter_of(looks: Looks) -> Count:
    """A function that counts the things of a kind and colour in a planned picture."""

    def count(kind: str, color: str = "") -> int:
        return sum(look.count for look in looks if look.kind == kind and color in ("", look.color))

    return count


def with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


class DrawnStatements(DrawnDataset):
    """Examples of a `SceneStatements` config: a true and a false statement for every form that fits a scene. The scenes
    are those of `scenes` with the same seed and sizes.

    inputs   "image": the scene's name; "statement"
    labels   "truth"
    facts    group: both statements of a form; form; image; the scene's things
    """

    name = "statements about drawn scenes"
    config: SceneStatements

    def make(self, split: str, i: int) -> SceneSet:
        _, scene = plain_scene(self.config, split, i)
        rng, known = Random(f"{self.config.seed}/{split}/{i}/statements"), things(scene)
        pairs = {form: rng.choice(choices) for form, write in WRITERS.items() if (choices := [*write(rng, scene)])}
        examples = tuple(
            Example(
                f"{scene.id}-{form.replace(' ', '_')}-{number}",
                {"image": scene.id, "statement": statement},
                facts={"group": f"{scene.id}-{form}", "form": form, "image": scene.id, "things": known},
                labels={"truth": number == 0},
            )
            for form in rng.sample([*pairs], min(self.config.statements, len(pairs)))
            for number, statement in enumerate(pairs[form])
        )
        return (scene,), examples

    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        return {"truth": LABELS}


def _shows(*nouns: str) -> str:
    return f"the picture shows {' and '.join(map(with_article, nouns))}"


def _absent(among: Callable[[Scene], list[str]]) -> Writer:
    """Pairs about a kind that is there, and one that is not, of the kinds `among`."""

    def write(rng: Random, scene: Scene) -> Iterator[tuple[str, str]]:
        kinds = {group.kind.name for group in scene.groups}
        absent = [kind for kind in among(scene) if kind not in kinds]
        for group in scene.groups if absent else ():
            yield _shows(group.kind.name), _shows(rng.choice(absent))

    return write


def similar_kinds(scene: Scene) -> list[str]:
    """The kinds of the sorts that a scene has."""
    return [kind for sort in sorted({SORT[group.kind.name] for group in scene.groups}) for kind in sorted(SORTS[sort])]


def _color(rng: Random, scene: Scene) -> Iterator[tuple[str, str]]:
    for group in scene.groups:
        wrong = rng.choice([color for color in group.kind.colors if color != group.color])
        yield _shows(f"{group.color} {group.kind.name}"), _shows(f"{wrong} {group.kind.name}")


def _number(rng: Random, scene: Scene) -> Iterator[tuple[str, str]]:
    for group in scene.groups:
        words = {1: f"one {group.kind.name}"} | {n: f"{word} {group.kind.plural}" for n, word in COUNTS.items()}
        right = words.pop(len(group.members))
        wrong = rng.choice([*words.values()])
        yield f"the picture shows exactly {right}", f"the picture shows exactly {wrong}"


def _swapped_colors(rng: Random, scene: Scene) -> Iterator[tuple[str, str]]:
    """The colours of two things change places: each kind comes in the other's colour too."""
    for a, b in _two(scene):
        if a.color != b.color and a.color in b.kind.colors and b.color in a.kind.colors:
            right = _shows(f"{a.color} {a.kind.name}", f"{b.color} {b.kind.name}")
            yield right, _shows(f"{b.color} {a.kind.name}", f"{a.color} {b.kind.name}")


def _swapped_sides(rng: Random, scene: Scene) -> Iterator[tuple[str, str]]:
    """Two things change places in the sentence."""
    for first, second in _two(scene):
        a, b = (scene.things[group.members[0]] for group in (first, second))
        relation = rng.choice(("to the left of", "to the right of"))
        if related(a, b, relation) and related(b, a, relation) is False:
            yield f"the {a.kind} is {relation} the {b.kind}", f"the {b.kind} is {relation} the {a.kind}"


def _two(scene: Scene) -> Iterator[tuple[Group, Group]]:
    """Any two groups of one thing each."""
    return permutations([group for group in scene.groups if not group.plural], 2)


WRITERS: dict[str, Writer] = {
    "kind": _absent(lambda scene: sorted(KINDS)),
    "similar kind": _absent(similar_kinds),
    "color": _color,
    "number": _number,
    "swapped colors": _swapped_colors,
    "swapped sides": _swapped_sides,
}
