"""Reads captions and questions about drawn scenes from their words alone: what they name, whether they are well-formed.

It knows the words of the world and nothing of the templates that wrote a text, so it reads whatever a model writes.
A noun phrase is `[the|a|an|two|three] [small|big] [colour] noun [place]`; what is said inside it is *given* of the
thing, and has to hold. What is said elsewhere ("is the ball to the left of the tree?") is *asked*, and may be false.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .world import COLORS, GROUNDS, KINDS, SIZES

NUMBERS = {"two": 2, "three": 3}
ARTICLES = {"the", "a", "an"}
SINGULAR = {kind.name: kind.name for kind in KINDS.values()}
PLURAL = {kind.plural: kind.name for kind in KINDS.values()}
ADJECTIVES = {*COLORS, *SIZES}
NOT_THINGS = {"left", "right", "sky", "water", "picture", "scene", "color", "way", "same", "middle", *GROUNDS}
PLACES: dict[tuple[str, ...], str] = {
    ("on", "the", "left"): "left",
    ("on", "the", "right"): "right",
    ("in", "the", "sky"): "sky",
    ("on", "the", "water"): "water",
    **{("on", "the", ground): ground for ground in GROUNDS},
}
PLACE_LENGTH = 3  # words, of all of them

RELATION = r"(?:near|next to|above|below|to the left of|to the right of)"
ONE_OR_MANY = r"(?:is ONE|are MANY)"
QUESTIONS = re.compile(
    "|".join(
        (
            rf"what color {ONE_OR_MANY}",
            rf"where {ONE_OR_MANY}",
            r"how many KINDS are (?:there|PLACE)",
            rf"{ONE_OR_MANY} (?:(?:bigger|smaller) than|{RELATION}) (?:ONE|MANY)",
            rf"is there SOME {RELATION} (?:ONE|MANY)",
            rf"what is {RELATION} (?:ONE|MANY)",
            rf"what {ONE_OR_MANY} looking at",
            rf"which way {ONE_OR_MANY} going",
        )
    )
)


@dataclass(frozen=True)
class Mention:
    """A thing that a text names, and what it gives of it.

    kind    a kind of the world, or the unknown word that stands where a noun should
    least   how many there must be: 1 for a single thing or "how many", 2 for a plural, or the number given
    """

    kind: str
    plural: bool = False
    least: int = 1
    colors: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def holds(self, things: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a scene has what is named. `things`: the example's facts, see `mmgen_scenes.dataset`."""
        return sum(self._fits(thing) for thing in things) >= self.least

    def _fits(self, thing: Mapping[str, Any]) -> bool:
        return (
            thing["kind"] == self.kind
            and all(color == thing["color"] for color in self.colors)
            and all(size == thing["size"] for size in self.sizes)
            and all(place in (thing["place"], thing["side"]) for place in self.places)
        )


def words(text: str) -> list[str]:
    """Lower-case words; the question mark is one of them, other punctuation is dropped."""
    return re.findall(r"[^\W_]+|\?", text.lower())


@lru_cache(maxsize=8192)  # references are judged again and again to say what chance is
def mentions(text: str) -> tuple[Mention, ...]:
    """The things that a text names, in its order."""
    return tuple(item for _, item in _phrases(words(text)) if isinstance(item, Mention))


@lru_cache(maxsize=8192)
def well_formed(question: str) -> bool:
    """Whether a text is one of the questions that can be asked in this language, its nouns agreeing in number."""
    tokens = words(question)
    if tokens[-1:] != ["?"]:
        return False
    return QUESTIONS.fullmatch(" ".join(symbol for symbol, _ in _phrases(tokens[:-1]))) is not None


def relevant(question: str, things: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a question names something, and everything it names is there as it is said to be."""
    named = mentions(question)
    return bool(named) and all(mention.holds(things) for mention in named)


def discovers(question: str, things: Sequence[Mapping[str, Any]], caption: str) -> bool:
    """Whether a question is relevant and names a thing that the caption does not mention. By kinds, which is by things:
    a scene never holds two unlike things of one kind."""
    told = {mention.kind for mention in mentions(caption)}
    return relevant(question, things) and any(mention.kind not in told for mention in mentions(question))


def _phrases(tokens: list[str]) -> list[tuple[str, str | Mention]]:
    """The text in pieces, each a symbol and what it stands for. A noun phrase is ONE (the dog), MANY (the dogs), SOME
    (a dog), KINDS (dogs) or ODD (two dog) and its Mention; a free place is PLACE; other words stand for themselves."""
    found: list[tuple[str, str | Mention]] = []
    at = 0
    while at < len(tokens):
        if place := _place(tokens, at):
            found.append(("PLACE", " ".join(place)))
            at += len(place)
        elif phrase := _noun_phrase(tokens, at):
            symbol, mention, at = phrase
            found.append((symbol, mention))
        else:
            found.append((tokens[at], tokens[at]))
            at += 1
    return found


def _noun_phrase(tokens: list[str], start: int) -> tuple[str, Mention, int] | None:
    """Symbol, mention and end of the noun phrase that starts here, if one does. After an article, a noun is due: an
    unknown word there names a thing that no scene has."""
    at = start
    article = tokens[at] if tokens[at] in ARTICLES else ""
    at += bool(article)
    number = NUMBERS.get(tokens[at], 0) if at < len(tokens) else 0
    at += bool(number)
    adjectives = []
    while at < len(tokens) and tokens[at] in ADJECTIVES:
        adjectives.append(tokens[at])
        at += 1
    if at == len(tokens) or tokens[at] == "?":
        return None
    noun, plural = tokens[at], tokens[at] in PLURAL
    if not plural and noun not in SINGULAR and (not article or noun in NOT_THINGS):
        return None
    counted = start >= 2 and tokens[start - 2 : start] == ["how", "many"]
    given, end = _places_after(tokens, at + 1)
    mention = Mention(
        kind=PLURAL.get(noun, noun),
        plural=plural,
        least=number or (2 if plural and not counted else 1),
        colors=tuple(word for word in adjectives if word in COLORS),
        sizes=tuple(word for word in adjectives if word in SIZES),
        places=given,
    )
    return _symbol(article, number, plural, tokens[start + 1 : at + 1]), mention, end


def _symbol(article: str, number: int, plural: bool, rest: list[str]) -> str:
    if article == "the":
        return "MANY" if plural else "ODD" if number else "ONE"
    if article and not plural and not number:
        return "SOME" if article == ("an" if rest[0][0] in "aeiou" else "a") else "ODD"
    return "KINDS" if plural and not article and not number else "ODD"


def _places_after(tokens: list[str], at: int) -> tuple[tuple[str, ...], int]:
    """The places given right after a noun, and where the phrase ends; a place after "is" or "are" is given too, but is
    not part of the phrase."""
    given = []
    while place := _place(tokens, at):
        given.append(PLACES[place])
        at += len(place)
    if tokens[at : at + 1] in (["is"], ["are"]) and (place := _place(tokens, at + 1)):
        given.append(PLACES[place])
    return tuple(given), at


def _place(tokens: list[str], at: int) -> tuple[str, ...] | None:
    place = tuple(tokens[at : at + PLACE_LENGTH])
    return place if place in PLACES else None
