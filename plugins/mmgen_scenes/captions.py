"""Writes captions: true, and about a part of the scene only."""

from __future__ import annotations

from random import Random
from typing import Any

from .phrases import Text, be, indefinite, relations
from .world import Scene

TRIES = 40  # for every caption, before a scene is left with fewer


def write(rng: Random, scene: Scene, told: tuple[int, int], count: int) -> list[Text]:
    """`count` different captions, all of the same two groups (positions in Scene.groups) and of nothing else."""
    written: dict[str, Text] = {}
    for _ in range(TRIES * count):
        text = _caption(rng, scene, told if rng.random() < 0.5 else told[::-1])
        written.setdefault(text.text, text)
        if len(written) == count:
            break
    return list(written.values())


def spans(scene: Scene, caption: Text) -> list[list[Any]]:
    """Which characters of a caption name which things. Looked for in order: "a ball" begins "a balloon" too."""
    found, end = [], 0
    for phrase, group in zip(caption.phrases, caption.groups, strict=True):
        start = caption.text.index(phrase.text, end)
        end = start + len(phrase.text)
        found.append([start, end, list(scene.groups[group].members)])
    return found


def _caption(rng: Random, scene: Scene, pair: tuple[int, int]) -> Text:
    a, b = (scene.groups[i] for i in pair)
    forms = [  # weight, words, whether places are told
        (3, "{} and {}", False),
        (2, f"there {be(a)} {{}} and {{}}", False),
        (2, "a picture of {} and {}", False),
        (3, "{} and {}", True),
        (2, "we see {} and {}", True),
    ]
    if not a.plural and not b.plural:
        true = relations(scene.things[a.members[0]], scene.things[b.members[0]])
        forms += [(1, f"{{}} {relation} {{}}", False) for relation in true]
    _, form, placed = rng.choices(forms, [weight for weight, _, _ in forms])[0]
    phrases = tuple(indefinite(rng, scene, group, placed) for group in (a, b))
    return Text(form.format(*(phrase.text for phrase in phrases)), phrases, pair)
