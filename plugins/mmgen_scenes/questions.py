"""Writes questions about the things of a scene, captioned or not; every property that a question gives a thing is true.

A form asks about the group at `topic` (a position in Scene.groups); some forms also name the group at `partner`. A form
returns None where it does not apply.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .grammar import Mention
from .phrases import (
    Phrase,
    Text,
    at_place,
    definite_phrase,
    is_or_are,
    relations,
    single_phrase,
    uncolored_phrase,
    varied_phrase,
)
from .relations import area
from .world import Scene


def write(rng: Random, scene: Scene, captioned: tuple[int, int], count: int) -> list[Text]:
    """`count` different questions.

    Groups are chosen in proportion to their area, captioned or not; a captioned group is named together with the other
    captioned group only, so that about half of the questions name something that no caption mentions. The form depends
    on the group: several things are counted, animals look somewhere.
    """
    written: dict[str, Text] = {}
    used: list[Callable] = []
    everything = range(len(scene.groups))
    areas = [sum(area(scene.things[i]) for i in group.members) for group in scene.groups]
    while len(written) < count:
        topic = rng.choices(everything, areas)[0]
        partner = rng.choice([i for i in (captioned if topic in captioned else everything) if i != topic])
        forms = FORMS["many" if scene.groups[topic].plural else scene.groups[topic].kind.moves]
        form = rng.choices(tuple(forms), tuple(forms.values()))[0]
        text = form(rng, scene, topic, partner) if used.count(form) < MOST_OF_A_FORM else None
        if text is not None and text.text not in written:
            written[text.text] = text
            used.append(form)
    return list(written.values())


def _ask_color(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = uncolored_phrase(rng, scene, group)
    return Text(f"what color {is_or_are(group)} {phrase.text}?", (phrase,), (topic,))


def _ask_where(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = varied_phrase(rng, group, "color", "size")
    return Text(f"where {is_or_are(group)} {phrase.text}?", (phrase,), (topic,))


def _ask_how_many(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    color, place = rng.choice((("", ""), (group.color, ""), ("", group.place)))
    mention = Mention(group.kind.name, plural=True, colors=(color,) if color else (), places=(place,) if place else ())
    phrase = Phrase(f"{color} {group.kind.plural}".strip(), mention)
    return Text(f"how many {phrase.text} are {at_place(place) or 'there'}?", (phrase,), (topic,))


def _ask_bigger(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    a, b = definite_phrase(scene.groups[topic]), definite_phrase(scene.groups[partner])
    comparison = rng.choice(("bigger", "smaller"))
    return Text(f"{is_or_are(scene.groups[topic])} {a.text} {comparison} than {b.text}?", (a, b), (topic, partner))


def _ask_is_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    group, partner_group = scene.groups[topic], scene.groups[partner]
    if partner_group.plural:
        return None
    a, b = varied_phrase(rng, group, "", "color"), definite_phrase(partner_group)
    relation = rng.choice(("near", "to the left of", "to the right of"))
    return Text(f"is {a.text} {relation} {b.text}?", (a, b), (topic, partner))


def _ask_is_there(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    a, b = single_phrase(scene.groups[topic], scene.groups[topic].color), definite_phrase(scene.groups[partner])
    return Text(f"is there {a.text} near {b.text}?", (a, b), (topic, partner))


def _ask_what_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    """Asks only where there is an answer."""
    group = scene.groups[topic]
    thing = scene.things[group.members[0]]
    true_relations = sorted(
        {relation for candidate in scene.things if candidate is not thing for relation in relations(candidate, thing)}
    )
    if not true_relations:
        return None
    phrase = definite_phrase(group)
    return Text(f"what is {rng.choice(true_relations).replace('near', 'next to')} {phrase.text}?", (phrase,), (topic,))


def _ask_movement(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = varied_phrase(rng, group, "", "color")
    form = {"looking": "what is {} looking at?", "going": "which way is {} going?"}[group.kind.moves]
    return Text(form.format(phrase.text), (phrase,), (topic,))


MOST_OF_A_FORM = 2  # questions of one form per scene
# How often each form is tried, for groups of several things and for single things by Kind.moves.
FORMS: dict[str, dict[Callable, int]] = {
    "many": {_ask_how_many: 8, _ask_color: 2, _ask_where: 1, _ask_bigger: 1},
    "looking": {
        _ask_movement: 8,
        _ask_color: 1,
        _ask_where: 1,
        _ask_bigger: 1,
        _ask_is_beside: 1,
        _ask_is_there: 1,
        _ask_what_beside: 2,
    },
    "going": {
        _ask_movement: 6,
        _ask_color: 2,
        _ask_where: 1,
        _ask_bigger: 1,
        _ask_is_beside: 1,
        _ask_is_there: 1,
        _ask_what_beside: 2,
    },
    "": {
        _ask_color: 5,
        _ask_where: 2,
        _ask_bigger: 2,
        _ask_is_beside: 2,
        _ask_is_there: 2,
        _ask_what_beside: 3,
        _ask_how_many: 1,
    },
}
