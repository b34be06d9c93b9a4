"""Writes captions: true, and about only a part of the scene."""

from __future__ import annotations

from random import Random
from typing import Any

from .phrases import Text, indefinite_phrase, is_or_are, relations
from .world import Scene

TRIES = 40  # tries per caption before a scene gets fewer captions


def write(rng: Random, scene: Scene, captioned: tuple[int, int], count: int, about: str = "same") -> list[Text]:
    """`count` different captions about two groups (positions in Scene.groups) and nothing else: the groups `captioned`;
    those of the captions after the first are drawn again with `about` "any", and have none of `captioned` with "others"
    where the scene has two others."""
    written: dict[str, Text] = {}
    for _ in range(TRIES * count):
        pair = _other_pair(rng, scene, captioned, about) if about != "same" and written else captioned
        text = _sample_caption(rng, scene, pair if rng.random() < 0.5 else pair[::-1])
        written.setdefault(text.text, text)
        if len(written) == count:
            break
    return list(written.values())


def _other_pair(rng: Random, scene: Scene, captioned: tuple[int, int], about: str) -> tuple[int, int]:
    groups = [group for group in range(len(scene.groups)) if about == "any" or group not in captioned]
    first, second = rng.sample(groups if len(groups) > 1 else range(len(scene.groups)), 2)
    return first, second


def spans(scene: Scene, caption: Text) -> list[list[Any]]:
    """Which characters of a caption name which things. The search is in order, as "a balloon" starts with "a ball"."""
    positions, end = [], 0
    for phrase, group in zip(caption.phrases, caption.groups, strict=True):
        start = caption.text.index(phrase.text, end)
        end = start + len(phrase.text)
        positions.append([start, end, list(scene.groups[group].members)])
    return positions


def _sample_caption(rng: Random, scene: Scene, pair: tuple[int, int]) -> Text:
    a, b = (scene.groups[i] for i in pair)
    forms = [  # weight, words, whether phrases have places
        (3, "{} and {}", False),
        (2, f"there {is_or_are(a)} {{}} and {{}}", False),
        (2, "a picture of {} and {}", False),
        (3, "{} and {}", True),
        (2, "we see {} and {}", True),
    ]
    if not a.plural and not b.plural:
        true = relations(scene.things[a.members[0]], scene.things[b.members[0]])
        forms += [(1, f"{{}} {relation} {{}}", False) for relation in true]
    _, form, with_places = rng.choices(forms, [weight for weight, _, _ in forms])[0]
    phrases = tuple(indefinite_phrase(rng, scene, group, with_places) for group in (a, b))
    return Text(form.format(*(phrase.text for phrase in phrases)), phrases, pair)
