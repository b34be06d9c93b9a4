"""Parses captions of scenes into Stanford Dependencies, for VisualBERT's syntactic grounding.

The parser knows only the forms of `mmgen_scenes.captions`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .world import COLORS, GROUNDS, KINDS, SIZES

Parse = tuple[tuple[int, str], ...]  # per word: its head, counted from 1, 0 for the root; the relation

MODIFIERS = {"D": "det", "N": "num", "J": "amod"}
TAGS = {
    **dict.fromkeys(("a", "an", "the"), "D"),
    **dict.fromkeys(("two", "three"), "N"),
    **dict.fromkeys((*COLORS, *SIZES), "J"),
    **dict.fromkeys(("on", "in", "near", "to", "of"), "P"),
    **{name: "T" for kind in KINDS.values() for name in (kind.name, kind.plural)},
    **dict.fromkeys(("left", "right", "sky", "water", *GROUNDS, "picture"), "L"),  # nouns that are not things
    **dict.fromkeys(("is", "are", "see"), "V"),
    **{"and": "C", "there": "E", "we": "W"},
}
NOUN = re.compile("[TL]")


def parse(caption: str) -> Parse:
    """The parse of a caption's words, split at spaces. Raises KeyError for a word that captions do not have."""
    return _parse_tags("".join(TAGS[word] for word in caption.split()))


@lru_cache(maxsize=1024)  # captions have few forms, and captions of one form have equal tags
def _parse_tags(tags: str) -> Parse:
    return tuple((head + 1, relation) for head, relation in (_arc(tags, place) for place in range(len(tags))))


def _arc(tags: str, place: int) -> tuple[int, str]:
    """The position of a word's head, -1 for the root, and the relation to it. A second thing is joined to the first."""
    tag, thing, verb = tags[place], tags.find("T"), tags.find("V")
    if tag in MODIFIERS and (noun := NOUN.search(tags, place)):
        return noun.start(), MODIFIERS[tag]
    if tag == "P":
        return max(tags.rfind(noun, 0, place) for noun in "TL"), "prep"
    if tag == "C":
        return thing, "cc"
    if tag in "EW":
        return verb, "expl" if tag == "E" else "nsubj"
    before = len(tags[:place].rstrip("DNJ")) - 1  # the word before a noun and its modifiers
    if tag != "V" and before >= 0 and tags[before] == "P":
        return before, "pobj"
    if tag == "T" and thing < place:
        return thing, "conj"
    if tag == "T" and verb >= 0:
        return verb, "nsubj" if "E" in tags else "dobj"
    return -1, "root"
