"""Writes questions: about what is there, captioned or not; whatever a question gives of a thing is true.

A form asks about the group at `topic` (a position in Scene.groups), some forms also name the one at `partner`. A form
returns None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .grammar import Mention
from .phrases import Phrase, Text, at, be, definite, described, relations, some, uncolored
from .relations import area
from .world import Scene


def write(rng: Random, scene: Scene, told: tuple[int, int], count: int) -> list[Text]:
    """`count` different questions.

    Groups are asked about in proportion to the area that they take, captioned or not; a captioned one is named beside
    the other captioned one only, so that about half of the questions name something that no caption mentions. How one
    asks depends on what one asks about: many are counted, animals look somewhere.
    """
    written: dict[str, Text] = {}
    used: list[Callable] = []
    everything = range(len(scene.groups))
    areas = [sum(area(scene.things[i]) for i in group.members) for group in scene.groups]
    while len(written) < count:
        topic = rng.choices(everything, areas)[0]
        partner = rng.choice([i for i in (told if topic in told else everything) if i != topic])
        forms = FORMS["many" if scene.groups[topic].plural else scene.groups[topic].kind.moves]
        form = rng.choices(tuple(forms), tuple(forms.values()))[0]
        text = form(rng, scene, topic, partner) if used.count(form) < MOST_OF_A_FORM else None
        if text is not None and text.text not in written:
            written[text.text] = text
            used.append(form)
    return list(written.values())


def _color(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = uncolored(rng, scene, group)
    return Text(f"what color {be(group)} {phrase.text}?", (phrase,), (topic,))


def _where(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = described(rng, group, "color", "size")
    return Text(f"where {be(group)} {phrase.text}?", (phrase,), (topic,))


def _how_many(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    color, place = rng.choice((("", ""), (group.color, ""), ("", group.place)))
    mention = Mention(group.kind.name, plural=True, colors=(color,) if color else (), places=(place,) if place else ())
    phrase = Phrase(f"{color} {group.kind.plural}".strip(), mention)
    return Text(f"how many {phrase.text} are {at(place) or 'there'}?", (phrase,), (topic,))


def _bigger(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    a, b = definite(scene.groups[topic]), definite(scene.groups[partner])
    comparison = rng.choice(("bigger", "smaller"))
    return Text(f"{be(scene.groups[topic])} {a.text} {comparison} than {b.text}?", (a, b), (topic, partner))


def _is_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    group, other = scene.groups[topic], scene.groups[partner]
    if other.plural:
        return None
    a, b = described(rng, group, "", "color"), definite(other)
    relation = rng.choice(("near", "to the left of", "to the right of"))
    return Text(f"is {a.text} {relation} {b.text}?", (a, b), (topic, partner))


def _is_there(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    a, b = some(scene.groups[topic], scene.groups[topic].color), definite(scene.groups[partner])
    return Text(f"is there {a.text} near {b.text}?", (a, b), (topic, partner))


def _what_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    """Asked only where there is something to answer with."""
    group = scene.groups[topic]
    thing = scene.things[group.members[0]]
    true = sorted({relation for other in scene.things if other is not thing for relation in relations(other, thing)})
    if not true:
        return None
    phrase = definite(group)
    return Text(f"what is {rng.choice(true).replace('near', 'next to')} {phrase.text}?", (phrase,), (topic,))


def _moving(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = described(rng, group, "", "color")
    form = {"looking": "what is {} looking at?", "going": "which way is {} going?"}[group.kind.moves]
    return Text(form.format(phrase.text), (phrase,), (topic,))


MOST_OF_A_FORM = 2  # questions a scene
# How often each form is tried: of groups of many, and of single things by what Kind.moves says.
FORMS: dict[str, dict[Callable, int]] = {
    "many": {_how_many: 8, _color: 2, _where: 1, _bigger: 1},
    "looking": {_moving: 8, _color: 1, _where: 1, _bigger: 1, _is_beside: 1, _is_there: 1, _what_beside: 2},
    "going": {_moving: 6, _color: 2, _where: 1, _bigger: 1, _is_beside: 1, _is_there: 1, _what_beside: 2},
    "": {_color: 5, _where: 2, _bigger: 2, _is_beside: 2, _is_there: 2, _what_beside: 3, _how_many: 1},
}
