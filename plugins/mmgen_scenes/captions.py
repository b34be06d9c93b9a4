"""Writes captions: true, and about only a part of the scene."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from .phrases import indefinite_phrase, is_or_are
from .relations import RELATIONS, related
from .world import Group, Scene

TRIES = 40  # tries per caption before a scene gets fewer captions

Pair = tuple[Group, Group]


@dataclass(frozen=True)
class Caption:
    """A caption, its two noun phrases in order, and the groups that they name."""

    text: str
    phrases: tuple[str, ...]
    groups: Pair

    def spans(self) -> list[list[Any]]:
        """Which characters name which things: [first, end, [positions in Scene.things]] of each phrase."""
        spans, end = [], 0
        for phrase, group in zip(self.phrases, self.groups, strict=True):
            start = self.text.index(phrase, end)  # searched in order, as "a balloon" starts with "a ball"
            end = start + len(phrase)
            spans.append([start, end, list(group.members)])
        return spans


def write(rng: Random, scene: Scene, captioned: Pair, count: int, about: str = "same") -> list[Caption]:
    """`count` different captions about the groups `captioned` and nothing else; with `about` "others", those after the
    first are about two groups that it does not name, where the scene has them."""
    written: dict[str, Caption] = {}
    for _ in range(TRIES * count):
        first, second = _other_pair(rng, scene, captioned) if about == "others" and written else captioned
        caption = _write_caption(rng, scene, (first, second) if rng.random() < 0.5 else (second, first))
        written.setdefault(caption.text, caption)
        if len(written) == count:
            break
    return list(written.values())


def _other_pair(rng: Random, scene: Scene, captioned: Pair) -> Pair:
    others = [group for group in scene.groups if group not in captioned]
    first, second = rng.sample(others if len(others) > 1 else scene.groups, 2)
    return first, second


def _write_caption(rng: Random, scene: Scene, groups: Pair) -> Caption:
    forms = [  # weight, words, whether phrases may have places
        (3, "{} and {}", False),
        (2, f"there {is_or_are(groups[0])} {{}} and {{}}", False),
        (2, "a picture of {} and {}", False),
        (3, "{} and {}", True),
        (2, "we see {} and {}", True),
    ]
    if not any(group.plural for group in groups):
        a, b = (scene.things[group.members[0]] for group in groups)
        forms += [(1, f"{{}} {relation} {{}}", False) for relation in RELATIONS if related(a, b, relation)]
    _, form, with_places = rng.choices(forms, [weight for weight, _, _ in forms])[0]
    phrases = tuple(indefinite_phrase(rng, scene, group, with_places) for group in groups)
    return Caption(form.format(*phrases), phrases, groups)
