"""Stories about scenes that nobody sees, in the language of captions and questions: what a model of pictures and texts
can learn from texts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from mmgen.parts import Picture
from mmgen.tensors import Example

from . import SceneStories, captions
from .drawn import SampledDataset, SceneSet, things
from .phrases import at, be, definite, described, places, relations, uncolored
from .relations import ahead, larger, moves
from .world import Group, Scene, sample

FEWEST, MOST = 5, 7  # things in a scene


class Stories(SampledDataset):
    """Examples of a `SceneStories` config.

    inputs   "caption": the story
    targets  none
    facts    the scene's things
    """

    name = "stories about scenes"
    config: SceneStories

    def make(self, split: str, i: int) -> SceneSet:
        rng = Random(f"{self.config.seed}/{split}/{i}/story")
        scene = sample(rng, f"story-{split}-{i:05d}", FEWEST, MOST)
        story = " ".join(f"{sentence}." for sentence in write(rng, scene, self.config.sentences))
        return SceneSet((scene,), (Example(scene.id, {"caption": story}, facts={"things": things(scene)}),))

    def pictures(self) -> Iterator[Picture]:
        """None."""
        return iter(())


def write(rng: Random, scene: Scene, count: int) -> list[str]:
    """`count` different sentences about a scene, all true; the first one names two groups of things."""
    told = rng.sample(range(len(scene.groups)), 2)
    written = [captions.write(rng, scene, (told[0], told[1]), 1)[0].text]
    while len(written) < count:
        group, other = rng.sample(scene.groups, 2)
        (form,) = rng.choices(tuple(FORMS), tuple(FORMS.values()))
        sentence = form(rng, scene, group, other)
        if sentence is not None and sentence not in written:
            written.append(sentence)
    return written


def _pictured(rng: Random, scene: Scene, group: Group, other: Group) -> str:
    pair = (scene.groups.index(group), scene.groups.index(other))
    return captions.write(rng, scene, pair, 1)[0].text


def _colored(rng: Random, scene: Scene, group: Group, other: Group) -> str:
    return f"{uncolored(rng, scene, group).text} {be(group)} {group.color}"


def _placed(rng: Random, scene: Scene, group: Group, other: Group) -> str:
    subject = described(rng, group, "", "color", "size").text
    return f"{subject} {be(group)} {at(rng.choice(places(scene, group)))}"


def _beside(rng: Random, scene: Scene, group: Group, other: Group) -> str | None:
    if group.plural or other.plural:
        return None
    true = relations(scene.things[group.members[0]], scene.things[other.members[0]])
    subject = described(rng, group, "", "color").text
    return f"{subject} is {rng.choice(true)} {definite(other).text}" if true else None


def _larger(rng: Random, scene: Scene, group: Group, other: Group) -> str | None:
    is_larger = larger(scene, group, other)
    word = "bigger" if is_larger else "smaller"
    return None if is_larger is None else f"{definite(group).text} {be(group)} {word} than {definite(other).text}"


def _moving(rng: Random, scene: Scene, group: Group, other: Group) -> str | None:
    if not moves(group):
        return None
    subject = described(rng, group, "", "color").text
    own = group.members[0]
    if moves(group) == "going":
        return f"{subject} is going to the {scene.things[own].facing}"
    found = ahead(scene, own)
    if found is None:
        return None
    (seen,) = (each for each in scene.groups if found in each.members)
    return None if seen.plural else f"{subject} is looking at {definite(seen).text}"


FORMS: dict[Callable[..., str | None], int] = {  # how often each is tried
    _pictured: 2,
    _colored: 2,
    _placed: 2,
    _beside: 4,
    _larger: 2,
    _moving: 5,
}
