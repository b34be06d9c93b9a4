"""The data set `scene_stories`: texts about scenes without pictures, in the language of captions and questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from mmgen.examples import Example
from mmgen.parts import Picture

from . import SceneStories, captions
from .drawn import SampledDataset, SceneSet, things
from .phrases import at_place, definite_phrase, is_or_are, places, relations, uncolored_phrase, varied_phrase
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
    captioned = rng.sample(range(len(scene.groups)), 2)
    written = [captions.write(rng, scene, (captioned[0], captioned[1]), 1)[0].text]
    while len(written) < count:
        group, partner = rng.sample(scene.groups, 2)
        (form,) = rng.choices(tuple(FORMS), tuple(FORMS.values()))
        sentence = form(rng, scene, group, partner)
        if sentence is not None and sentence not in written:
            written.append(sentence)
    return written


def _write_caption(rng: Random, scene: Scene, group: Group, partner: Group) -> str:
    pair = (scene.groups.index(group), scene.groups.index(partner))
    return captions.write(rng, scene, pair, 1)[0].text


def _write_color(rng: Random, scene: Scene, group: Group, partner: Group) -> str:
    return f"{uncolored_phrase(rng, scene, group).text} {is_or_are(group)} {group.color}"


def _write_place(rng: Random, scene: Scene, group: Group, partner: Group) -> str:
    subject = varied_phrase(rng, group, "", "color", "size").text
    return f"{subject} {is_or_are(group)} {at_place(rng.choice(places(scene, group)))}"


def _write_relation(rng: Random, scene: Scene, group: Group, partner: Group) -> str | None:
    if group.plural or partner.plural:
        return None
    true_relations = relations(scene.things[group.members[0]], scene.things[partner.members[0]])
    subject = varied_phrase(rng, group, "", "color").text
    return f"{subject} is {rng.choice(true_relations)} {definite_phrase(partner).text}" if true_relations else None


def _write_size(rng: Random, scene: Scene, group: Group, partner: Group) -> str | None:
    is_larger = larger(scene, group, partner)
    word = "bigger" if is_larger else "smaller"
    return (
        None
        if is_larger is None
        else f"{definite_phrase(group).text} {is_or_are(group)} {word} than {definite_phrase(partner).text}"
    )


def _write_movement(rng: Random, scene: Scene, group: Group, partner: Group) -> str | None:
    if not moves(group):
        return None
    subject = varied_phrase(rng, group, "", "color").text
    thing = group.members[0]
    if moves(group) == "going":
        return f"{subject} is going to the {scene.things[thing].facing}"
    target = ahead(scene, thing)
    if target is None:
        return None
    (target_group,) = (candidate for candidate in scene.groups if target in candidate.members)
    return None if target_group.plural else f"{subject} is looking at {definite_phrase(target_group).text}"


FORMS: dict[Callable[..., str | None], int] = {  # how often each form is tried
    _write_caption: 2,
    _write_color: 2,
    _write_place: 2,
    _write_relation: 4,
    _write_size: 2,
    _write_movement: 5,
}
