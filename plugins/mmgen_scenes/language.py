"""Writes captions and questions about a scene. All of them are true, or ask about what is there.

Every text comes with the mentions it was made from, so that `mmgen_scenes.grammar`, which reads words alone, can be
tested against it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from .grammar import Mention
from .world import Group, Scene, Thing

COUNTS = {2: "two", 3: "three"}
NEAR = 0.36  # greatest distance of centres of things that are called near
APART = 0.15  # least distance along one axis of things of which one is called left of, or above, the other


@dataclass(frozen=True)
class Phrase:
    """A noun phrase: its words and what they give."""

    text: str
    mention: Mention


@dataclass(frozen=True)
class Text:
    """A caption or a question. `groups`: positions in Scene.groups of what is named, in the text's order."""

    text: str
    phrases: tuple[Phrase, ...]
    groups: tuple[int, ...]


def captions(rng: Random, scene: Scene, told: tuple[int, int], count: int) -> list[Text]:
    """`count` captions, all of the same two groups and of nothing else; different wherever the templates allow it."""
    written: dict[str, Text] = {}
    for _ in range(40 * count):
        text = _caption(rng, scene, told if rng.random() < 0.5 else told[::-1])
        written.setdefault(text.text, text)
        if len(written) == count:
            break
    return list(written.values())


def _caption(rng: Random, scene: Scene, pair: tuple[int, int]) -> Text:
    a, b = (scene.groups[i] for i in pair)
    verb = "are" if a.plural else "is"
    forms = [
        (3, "{} and {}", False),
        (2, f"there {verb} {{}} and {{}}", False),
        (2, "a picture of {} and {}", False),
        (3, "{} and {}", True),
        (2, "we see {} and {}", True),
    ]
    if between := _relation(scene, a, b):
        forms.append((2, f"{{}} {rng.choice(between)} {{}}", False))
    _, form, placed = rng.choices(forms, [weight for weight, _, _ in forms])[0]
    phrases = tuple(_indefinite(rng, scene, group, placed) for group in (a, b))
    return Text(form.format(*(phrase.text for phrase in phrases)), phrases, pair)


def _indefinite(rng: Random, scene: Scene, group: Group, placed: bool) -> Phrase:
    """ "a small red ball on the left", "two birds" """
    color = group.color if rng.random() < 0.7 else ""
    size = group.size if rng.random() < 0.35 else ""
    place = rng.choice(_places(scene, group)) if placed and rng.random() < 0.8 else ""
    names = " ".join(filter(None, (size, color, group.kind.plural if group.plural else group.kind.name)))
    count = len(group.members)
    article = COUNTS[count] if group.plural else "an" if names[0] in "aeiou" else "a"
    return Phrase(
        " ".join(filter(None, (article, names, _at(place)))), _mention(group, count, color=color, size=size, place=place)
    )


def _definite(group: Group, color: str = "", size: str = "", place: str = "") -> Phrase:
    """ "the red ball", "the birds in the sky" """
    name = group.kind.plural if group.plural else group.kind.name
    text = " ".join(filter(None, ("the", size, color, name, _at(place))))
    return Phrase(text, _mention(group, 2 if group.plural else 1, color=color, size=size, place=place))


def _mention(group: Group, least: int, color: str, size: str, place: str) -> Mention:
    return Mention(
        kind=group.kind.name,
        plural=group.plural,
        least=least,
        colors=(color,) if color else (),
        sizes=(size,) if size else (),
        places=(place,) if place else (),
    )


def _at(place: str) -> str:
    return place and ("in the sky" if place == "sky" else f"on the {place}")


def _places(scene: Scene, group: Group) -> list[str]:
    """The places that are true of every member."""
    sides = {scene.things[i].side for i in group.members}
    side = sides.pop() if len(sides) == 1 else ""
    return [group.place, side] if side else [group.place]


def _relation(scene: Scene, a: Group, b: Group) -> list[str]:
    """What is true between two single things: "near", "to the left of", ..."""
    if a.plural or b.plural:
        return []
    return _between(scene.things[a.members[0]], scene.things[b.members[0]])


def _between(a: Thing, b: Thing) -> list[str]:
    (ax, ay), (bx, by) = _center(a), _center(b)
    holds = {
        "near": (ax - bx) ** 2 + (ay - by) ** 2 < NEAR**2,
        "to the left of": bx - ax > APART,
        "to the right of": ax - bx > APART,
    }
    return [relation for relation, true in holds.items() if true]


def _center(thing: Thing) -> tuple[float, float]:
    x0, y0, x1, y1 = thing.box
    return (x0 + x1) / 2, (y0 + y1) / 2


def questions(rng: Random, scene: Scene, told: tuple[int, int], count: int) -> list[Text]:
    """`count` different questions. Big things are asked about more often; captioned ones are asked about like others, and
    asked together with each other, so that about half of the questions name something that no caption mentions."""
    written: dict[str, Text] = {}
    used: list[Callable] = []
    weights = [2 if group.size == "big" else 1 for group in scene.groups]
    everything = range(len(scene.groups))
    for attempt in range(100 * count):
        topic = rng.choices(everything, weights)[0]
        partner = rng.choice([i for i in (told if topic in told else everything) if i != topic])
        form = rng.choices(FORMS, FORM_WEIGHTS)[0]
        if form in used and attempt < 20 * count:
            continue
        text = form(rng, scene, topic, partner)
        if text is None or text.text in written:
            continue
        written[text.text] = text
        used.append(form)
        if len(written) == count:
            break
    return list(written.values())


# Each form below asks about the group at `topic`, some with the one at `partner`; None when it does not apply.


def _color(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    given = rng.choice(({}, {"size": group.size}, {"place": rng.choice(_places(scene, group))}))
    phrase = _definite(group, **given)
    return Text(f"what color {_be(group)} {phrase.text}?", (phrase,), (topic,))


def _where(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    group = scene.groups[topic]
    phrase = _definite(group, **rng.choice(({"color": group.color}, {"size": group.size})))
    return Text(f"where {_be(group)} {phrase.text}?", (phrase,), (topic,))


def _how_many(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    group = scene.groups[topic]
    if not group.plural and rng.random() < 0.8:  # a single thing is seldom counted
        return None
    name, place = group.kind.plural, rng.choice(("", group.place))
    color = group.color if not place and rng.random() < 0.5 else ""
    mention = Mention(group.kind.name, True, 1, (color,) if color else (), (), (place,) if place else ())
    named = f"{color} {name}".strip()
    return Text(f"how many {named} are {_at(place) or 'there'}?", (Phrase(named, mention),), (topic,))


def _bigger(rng: Random, scene: Scene, topic: int, partner: int) -> Text:
    a, b = scene.groups[topic], scene.groups[partner]
    phrases = (_definite(a), _definite(b))
    return Text(
        f"{_be(a)} {phrases[0].text} {rng.choice(('bigger', 'smaller'))} than {phrases[1].text}?", phrases, (topic, partner)
    )


def _is_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    a, b = scene.groups[topic], scene.groups[partner]
    if a.plural or b.plural:
        return None
    phrases = (_definite(a, **rng.choice(({}, {"color": a.color}))), _definite(b))
    relation = rng.choice(("near", "to the left of", "to the right of"))
    return Text(f"is {phrases[0].text} {relation} {phrases[1].text}?", phrases, (topic, partner))


def _is_there(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    a, b = scene.groups[topic], scene.groups[partner]
    if a.plural:
        return None
    named = f"{a.color} {a.kind.name}"
    some = Phrase(f"{'an' if named[0] in 'aeiou' else 'a'} {named}", Mention(a.kind.name, colors=(a.color,)))
    phrases = (some, _definite(b))
    return Text(f"is there {some.text} near {phrases[1].text}?", phrases, (topic, partner))


def _what_beside(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    """Asked only when something is there to answer with."""
    group = scene.groups[topic]
    if group.plural:
        return None
    thing = scene.things[group.members[0]]
    true = sorted({relation for other in scene.things if other is not thing for relation in _between(other, thing)})
    if not true:
        return None
    phrase = _definite(group)
    return Text(f"what is {rng.choice(true).replace('near', 'next to')} {phrase.text}?", (phrase,), (topic,))


def _moving(rng: Random, scene: Scene, topic: int, partner: int) -> Text | None:
    group = scene.groups[topic]
    if group.plural or not group.kind.moves:
        return None
    phrase = _definite(group, **rng.choice(({}, {"color": group.color})))
    form = "what is {} looking at?" if group.kind.moves == "looking" else "which way is {} going?"
    return Text(form.format(phrase.text), (phrase,), (topic,))


def _be(group: Group) -> str:
    return "are" if group.plural else "is"


FORMS = (_color, _where, _how_many, _bigger, _is_beside, _is_there, _what_beside, _moving)
FORM_WEIGHTS = (4, 2, 3, 2, 2, 2, 3, 3)
