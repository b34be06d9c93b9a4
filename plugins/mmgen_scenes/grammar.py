"""Reads texts about scenes: what their words name, and whether a scene has it.

The grammar knows the words of the world but not the templates of the texts, so it reads whatever a model generates.
What a noun phrase says about its thing must hold; what the rest of a question says ("is the ball to the left of the
tree?") may be false.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .phrases import COUNTS, at_place
from .world import COLORS, GROUNDS, KINDS, PLURAL, SIDES, SIZES

NUMBERS = {word: number for number, word in COUNTS.items()}
PLACES = {at_place(place): place for place in (*SIDES, "sky", "water", *GROUNDS)}
NOT_THINGS = ("left", "right", "sky", "water", "picture", "scene", "color", "way", "same", "middle", *GROUNDS)


def _any_of(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(word.replace(' ', '[ ]') for word in words)})"


PLACE = _any_of(PLACES)
PIECE = re.compile(  # of a text whose words each have a space behind them
    rf"""
    (?P<place> {PLACE} )[ ]                                     # outside of a noun phrase
    |                                                           # or a noun phrase:
    (?: (?P<article> the | an? )[ ] )?+
    (?: (?P<number> {_any_of(NUMBERS)} )[ ] )?+
    (?P<adjectives> (?: {_any_of((*COLORS, *SIZES))} [ ] )*+ )
    (?: (?P<many> {_any_of(PLURAL)} )
      | (?P<one> {_any_of(KINDS)} )
      | (?(article) (?! {_any_of(NOT_THINGS)} [ ] ) (?P<unknown> \w+ ) | (?!) )  # a noun must follow an article
    )[ ]
    (?P<places> (?: {PLACE} [ ] )* )
    (?= (?: (?: is | are )[ ] (?P<stated> {PLACE} )[ ] )? )     # not part of the phrase, but said of the thing
    |
    (?P<word> \S+ )[ ]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Mention:
    """A thing that a text names, with the properties that the text gives it.

    kind    a kind of the world, or an unknown word in the place of a noun
    least   the least number of such things: 1 for a singular or "how many", 2 for a plural, or the number in the text
    """

    kind: str
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
def parse(text: str) -> tuple[str, tuple[Mention, ...]]:
    """The symbols of a text ("what color is ONE ?"), and the things that it names in their order.

    A noun phrase is ONE (the dog), MANY (the dogs), SOME (a dog), KINDS (dogs) or ODD (two dog); a place outside of a
    noun phrase is PLACE; other words are kept.
    """
    spaced = "".join(f"{word} " for word in words(text))
    symbols, mentions = [], []
    for piece in PIECE.finditer(spaced):
        if piece["place"] or piece["word"]:
            symbols.append(piece["word"] or "PLACE")
        else:
            symbols.append(_symbol(piece))
            mentions.append(_mention(piece, counted=f" {spaced[: piece.start()]}".endswith(" how many ")))
    return " ".join(symbols), tuple(mentions)


def mentions(text: str) -> tuple[Mention, ...]:
    """The things that a text names, in the order of the text."""
    return parse(text)[1]


def is_relevant(question: str, things: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a question names something, and the scene has everything it names, with the properties given."""
    named_things = mentions(question)
    return bool(named_things) and all(mention.holds(things) for mention in named_things)


def discovers(question: str, things: Sequence[Mapping[str, Any]], caption: str) -> bool:
    """Whether a question is relevant and names a thing that the caption does not mention. Comparing kinds is enough, as
    all things of one kind in a scene look alike."""
    captioned_kinds = {mention.kind for mention in mentions(caption)}
    return is_relevant(question, things) and any(mention.kind not in captioned_kinds for mention in mentions(question))


def _mention(phrase: re.Match[str], counted: bool) -> Mention:
    """The thing that a noun phrase names. `counted`: in "how many dogs" one dog is enough."""
    adjectives = phrase["adjectives"].split()
    stated = [*re.findall(PLACE, phrase["places"]), *filter(None, [phrase["stated"]])]
    return Mention(
        kind=PLURAL[phrase["many"]] if phrase["many"] else phrase["one"] or phrase["unknown"],
        least=NUMBERS[phrase["number"]] if phrase["number"] else 2 if phrase["many"] and not counted else 1,
        colors=tuple(word for word in adjectives if word in COLORS),
        sizes=tuple(word for word in adjectives if word in SIZES),
        places=tuple(PLACES[place] for place in stated),
    )


def _symbol(phrase: re.Match[str]) -> str:
    article, number, plural = phrase["article"], phrase["number"], phrase["many"]
    if article == "the":
        return "MANY" if plural else "ODD" if number else "ONE"
    if number or bool(article) == bool(plural):
        return "ODD"
    if plural:
        return "KINDS"
    vowel = phrase[0].split()[1][0] in "aeiou"
    return "SOME" if article == ("an" if vowel else "a") else "ODD"
