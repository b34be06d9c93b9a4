"""Parses captions of scenes into Stanford Dependencies, for VisualBERT's syntactic grounding.

The parser knows only the forms of `mmgen_scenes.captions`.
"""

from __future__ import annotations

from functools import lru_cache

from .world import COLORS, GROUNDS, KINDS, SIZES

Parse = tuple[tuple[int, str], ...]  # per word: its head, counted from 1, 0 for the root; the relation

MODIFIERS = {"D": "det", "N": "num", "J": "amod"}
TAGS = {
    **dict.fromkeys(("a", "an", "the"), "D"),
    **dict.fromkeys(("two", "three"), "N"),
    **dict.fromkeys((*COLORS, *SIZES), "J"),
    **dict.fromkeys(("on", "in", "near", "to", "of"), "P"),
    **dict.fromkeys(("left", "right", "sky", "water", *GROUNDS), "L"),  # nouns of places
    **{name: "T" for kind in KINDS.values() for name in (kind.name, kind.plural)},
    **dict.fromkeys(("is", "are", "see"), "V"),
    "picture": "O",
    "and": "C",
    "there": "E",
    "we": "W",
}


def parse(caption: str) -> Parse:
    """The parse of a caption's words, split at spaces. Raises KeyError for a word that captions do not have."""
    return _parse_tags("".join(TAGS[word] for word in caption.split()))


@lru_cache(maxsize=1024)  # captions have few forms, and captions of one form have equal tags
def _parse_tags(tags: str) -> Parse:
    arcs = [(0, "root")] * len(tags)
    waiting: list[int] = []  # modifiers of the next noun
    subject = preposition = verb = noun = (
        thing
    ) = -1  # positions of the last of each; of the first thing, to which other things are joined

    def bind(word: int, head: int, relation: str) -> None:
        arcs[word] = (head + 1, relation)

    for place, tag in enumerate(tags):
        if tag in MODIFIERS:
            waiting.append(place)
        elif tag == "P":
            bind(place, noun, "prep")
            preposition = place
        elif tag == "C":
            bind(place, thing, "cc")
        elif tag in "EW":
            subject = place
        elif tag == "V":
            bind(subject, place, "expl" if tags[subject] == "E" else "nsubj")
            verb = place
        else:
            for word in waiting:
                bind(word, place, MODIFIERS[tags[word]])
            if preposition >= 0:
                bind(place, preposition, "pobj")
            elif thing >= 0:
                bind(place, thing, "conj")
            elif verb >= 0:
                bind(place, verb, "nsubj" if tags[subject] == "E" else "dobj")
            waiting, preposition, noun = [], -1, place
            thing = place if tag == "T" and thing < 0 else thing
    return tuple(arcs)
