"""Reads captions and questions about scenes: what their words name; well formed, relevant, naming what is new.

The grammar knows the words of the world but not the templates of the texts, so it reads whatever a model generates.
A noun phrase is `[the|a|an|two|three] [small|big] [colour] noun [place]`. What a noun phrase says about its thing must
hold; what the rest of a question says ("is the ball to the left of the tree?") may be false.
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
PLACE_LENGTH = 3  # words of every place

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
    """A thing that a text names, with the properties that the text gives it.

    kind    a kind of the world, or an unknown word in the place of a noun
    least   the least number of such things: 1 for a singular or "how many", 2 for a plural, or the number in the text
    """

    kind: str
    plural: bool = False
    least: int = 1
    colors: tuple[str, ...] = ()
    sizes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def holds(self, things: Sequence[Mapping[str, Any]]) -> bool:
        """Whether a scene has the named things. `things`: a fact of the example, see `mmgen_scenes.dataset`."""
        return sum(self.fits(thing) for thing in things) >= self.least

    def fits(self, thing: Mapping[str, Any]) -> bool:
        """Whether a thing is of the kind, and has the properties that the text gives it."""
        return (
            thing["kind"] == self.kind
            and all(color == thing["color"] for color in self.colors)
            and all(size == thing["size"] for size in self.sizes)
            and all(place in (thing["place"], thing["side"]) for place in self.places)
        )


def words(text: str) -> list[str]:
    """Lower-case words; the question mark is a word, other punctuation is dropped."""
    return re.findall(r"[^\W_]+|\?", text.lower())


@lru_cache(maxsize=8192)  # measuring chance reads the same references many times
def mentions(text: str) -> tuple[Mention, ...]:
    """The things that a text names, in the order of the text."""
    return tuple(item for _, item in _split_phrases(words(text)) if isinstance(item, Mention))


@lru_cache(maxsize=8192)
def is_well_formed(question: str) -> bool:
    """Whether a text is a question of this language, with nouns that agree in number."""
    return QUESTIONS.fullmatch(parse(question)[0]) is not None


@lru_cache(maxsize=8192)
def parse(question: str) -> tuple[str, tuple[Mention, ...]]:
    """The symbols of a question without its mark ("what color is ONE"), and the things that it names in their order;
    an empty text for a text without a question mark. `_split_phrases` has the symbols."""
    tokens = words(question)
    pieces = _split_phrases(tokens[:-1]) if tokens[-1:] == ["?"] else []
    return " ".join(symbol for symbol, _ in pieces), tuple(item for _, item in pieces if isinstance(item, Mention))


def is_relevant(question: str, things: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a question names something, and the scene has everything it names, with the properties given."""
    named_things = mentions(question)
    return bool(named_things) and all(mention.holds(things) for mention in named_things)


def discovers(question: str, things: Sequence[Mapping[str, Any]], caption: str) -> bool:
    """Whether a question is relevant and names a thing that the caption does not mention. Comparing kinds is enough, as
    all things of one kind in a scene look alike."""
    captioned_kinds = {mention.kind for mention in mentions(caption)}
    return is_relevant(question, things) and any(mention.kind not in captioned_kinds for mention in mentions(question))


def _split_phrases(tokens: list[str]) -> list[tuple[str, str | Mention]]:
    """The text in pieces, each a symbol and its content. A noun phrase is ONE (the dog), MANY (the dogs), SOME (a dog),
    KINDS (dogs) or ODD (two dog) with its Mention; a place outside of a noun phrase is PLACE; other words are kept."""
    pieces: list[tuple[str, str | Mention]] = []
    at = 0
    while at < len(tokens):
        if place := _place_at(tokens, at):
            pieces.append(("PLACE", " ".join(place)))
            at += len(place)
        elif phrase := _noun_phrase(tokens, at):
            symbol, mention, at = phrase
            pieces.append((symbol, mention))
        else:
            pieces.append((tokens[at], tokens[at]))
            at += 1
    return pieces


def _noun_phrase(tokens: list[str], start: int) -> tuple[str, Mention, int] | None:
    """Symbol, mention and end of the noun phrase that starts here; None without one. After an article a noun must
    follow: an unknown word there names a thing that no scene has."""
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
    given_places, end = _places_after(tokens, at + 1)
    mention = Mention(
        kind=PLURAL.get(noun, noun),
        plural=plural,
        least=number or (2 if plural and not counted else 1),
        colors=tuple(word for word in adjectives if word in COLORS),
        sizes=tuple(word for word in adjectives if word in SIZES),
        places=given_places,
    )
    return _symbol_of_phrase(article, number, plural, tokens[start + 1 : at + 1]), mention, end


def _symbol_of_phrase(article: str, number: int, plural: bool, rest: list[str]) -> str:
    if article == "the":
        return "MANY" if plural else "ODD" if number else "ONE"
    if article and not plural and not number:
        return "SOME" if article == ("an" if rest[0][0] in "aeiou" else "a") else "ODD"
    return "KINDS" if plural and not article and not number else "ODD"


def _places_after(tokens: list[str], at: int) -> tuple[tuple[str, ...], int]:
    """The places right after a noun, and the end of the phrase. A place after "is" or "are" counts too, but is not part
    of the phrase."""
    given_places = []
    while place := _place_at(tokens, at):
        given_places.append(PLACES[place])
        at += len(place)
    if tokens[at : at + 1] in (["is"], ["are"]) and (place := _place_at(tokens, at + 1)):
        given_places.append(PLACES[place])
    return tuple(given_places), at


def _place_at(tokens: list[str], at: int) -> tuple[str, ...] | None:
    place = tuple(tokens[at : at + PLACE_LENGTH])
    return place if place in PLACES else None
