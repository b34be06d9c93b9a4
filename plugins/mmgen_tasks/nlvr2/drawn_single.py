"""The data set `scene_statements`: true and false statements about one drawn scene, in pairs.

Their words are swapped, as in Winoground and SugarCrepe, or they name things that are not there, as in POPE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, SceneSet, plain_scene, things
from mmgen_scenes.phrases import COUNTS
from mmgen_scenes.relations import related
from mmgen_scenes.world import KINDS, SORT, SORTS, Group, Scene
from mmgen_vision.truths import LABELS

from mmgen.examples import Example

from .drawn_statements import with_article

if TYPE_CHECKING:
    from .config import SceneStatements

Pair = tuple[str, str]  # a true statement and a false one


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
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng = Random(f"{config.seed}/{split}/{i}/statements")
        pairs = {form: pair for form in config.forms or WRITERS if (pair := _write_pair(rng, scene, form))}
        known = things(scene)
        examples = tuple(
            Example(
                f"{scene.id}-{form.replace(' ', '_')}-{number}",
                {"image": scene.id, "statement": statement},
                facts={"group": f"{scene.id}-{form}", "form": form, "image": scene.id, "things": known},
                labels={"truth": number == 0},
            )
            for form in rng.sample([*pairs], min(config.statements, len(pairs)))
            for number, statement in enumerate(pairs[form])
        )
        return SceneSet((scene,), examples)

    def vocabularies(self) -> dict[str, tuple[str, ...]]:
        return {"truth": LABELS}


def _write_pair(rng: Random, scene: Scene, form: str) -> Pair | None:
    """One of the pairs of statements of a form that fit a scene; None without one."""
    pairs = [*WRITERS[form](rng, scene)]
    return rng.choice(pairs) if pairs else None


def _absent(among: Callable[[Scene], list[str]]) -> Callable[[Random, Scene], Iterator[Pair]]:
    """Pairs about a kind that is there, and one that is not, of the kinds `among`."""

    def write(rng: Random, scene: Scene) -> Iterator[Pair]:
        kinds = {group.kind.name for group in scene.groups}
        absent = [kind for kind in among(scene) if kind not in kinds]
        for group in scene.groups if absent else ():
            yield _shows(with_article(group.kind.name)), _shows(with_article(rng.choice(absent)))

    return write


def similar_kinds(scene: Scene) -> list[str]:
    """The kinds of the sorts that a scene has."""
    return [kind for sort in sorted({SORT[group.kind.name] for group in scene.groups}) for kind in sorted(SORTS[sort])]


def _color(rng: Random, scene: Scene) -> Iterator[Pair]:
    for group in scene.groups:
        kind = group.kind
        color = rng.choice([color for color in kind.colors if color != group.color])
        yield _shows(with_article(f"{group.color} {kind.name}")), _shows(with_article(f"{color} {kind.name}"))


def _number(rng: Random, scene: Scene) -> Iterator[Pair]:
    words = {1: "one", **COUNTS}
    for group in scene.groups:
        count = len(group.members)
        wrong = rng.choice([number for number in words if number != count])
        yield tuple(  # type: ignore[misc]
            f"the picture shows exactly {words[n]} {group.kind.plural if n > 1 else group.kind.name}"
            for n in (count, wrong)
        )


def _swapped_colors(rng: Random, scene: Scene) -> Iterator[Pair]:
    """The colours of two things change places: each kind comes in the other's colour too."""
    for first, second in _two(scene):
        possible = first.color in second.kind.colors and second.color in first.kind.colors
        if possible and first.color != second.color:
            a, b = first.kind.name, second.kind.name
            right = f"{with_article(f'{first.color} {a}')} and {with_article(f'{second.color} {b}')}"
            wrong = f"{with_article(f'{second.color} {a}')} and {with_article(f'{first.color} {b}')}"
            yield _shows(right), _shows(wrong)


def _swapped_sides(rng: Random, scene: Scene) -> Iterator[Pair]:
    """Two things change places in the sentence."""
    for first, second in _two(scene):
        a, b = (scene.things[group.members[0]] for group in (first, second))
        relation = rng.choice(("to the left of", "to the right of"))
        if related(a, b, relation) and related(b, a, relation) is False:
            yield f"the {a.kind} is {relation} the {b.kind}", f"the {b.kind} is {relation} the {a.kind}"


def _two(scene: Scene) -> Iterator[tuple[Group, Group]]:
    """Any two groups of one thing each."""
    alone = [group for group in scene.groups if len(group.members) == 1]
    yield from ((first, second) for first in alone for second in alone if first is not second)


def _shows(what: str) -> str:
    return f"the picture shows {what}"


WRITERS: dict[str, Callable[[Random, Scene], Iterator[Pair]]] = {
    "kind": _absent(lambda scene: sorted(KINDS)),
    "similar kind": _absent(similar_kinds),
    "color": _color,
    "number": _number,
    "swapped colors": _swapped_colors,
    "swapped sides": _swapped_sides,
}
