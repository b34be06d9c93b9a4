"""Dependencies of captions, from a CoNLL-U file or as the data set tells them, and which words are bound to a phrase by
which relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmgen.errors import DataError

from .phrases import Caption, Phrase

COLUMNS = 10  # ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC


@dataclass(frozen=True)
class Word:
    """A word of a parsed sentence. `head`: position of the word it depends on, None for the root; `first`, `end`:
    letters of the sentence, spaces not counted, so that another spacing finds it too."""

    form: str
    head: int | None
    relation: str
    first: int
    end: int


Parses = Mapping[str, Sequence[Word]]  # a sentence's letters -> its words


def letters(text: str) -> str:
    """What stays of a text when case and spaces are taken away: sentences are found by it."""
    return "".join(text.split()).casefold()


def read(path: Path) -> Parses:
    """All sentences of a file. Raises DataError with file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"parses: {path} cannot be read: {error}") from None
    found: dict[str, list[Word]] = {}
    rows: list[tuple[str, list[str]]] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            rows.append((f"{path}:{number}", line.split("\t")))
            if len(rows[-1][1]) != COLUMNS:
                raise DataError(
                    f"{path}:{number}: {len(rows[-1][1])} columns; CoNLL-U has {COLUMNS}, with tabs between them"
                )
        elif rows:
            words = _words(rows)
            found["".join(_surface(rows)).casefold()] = words
            rows = []
    return found


def _surface(rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """The forms as they are written: "can't", not "ca" and "n't" that it was split into."""
    until = 0
    for place, (number, form, *_) in rows:
        if "-" in number:
            until = _number(number.partition("-")[2], place)
        elif "." in number or _number(number, place) <= until:
            continue
        yield "".join(form.split())


def _words(rows: Sequence[tuple[str, Sequence[str]]]) -> list[Word]:
    """Words with an ID of their own; those of a multi-word token share its letters."""
    words: list[Word] = []
    place, until, shared = 0, 0, (0, 0)
    for where, row in rows:
        number, form = row[0], "".join(row[1].split())
        if "." in number:
            continue  # an empty node
        if "-" in number:
            until, shared = _number(number.partition("-")[2], where), (place, place + len(form))
            place += len(form)
            continue
        if _number(number, where) != len(words) + 1:
            raise DataError(f"{where}: word {number} follows word {len(words)}")
        span = shared if _number(number, where) <= until else (place, place + len(form))
        place = max(place, span[1])
        head = _number(row[6], where)
        words.append(Word(row[1], head - 1 if head else None, row[7], *span))
    for (where, _), word in zip((row for row in rows if row[1][0].isdigit()), words, strict=True):
        if word.head is not None and word.head >= len(words):
            raise DataError(f"{where}: the head is word {word.head + 1}, and there are {len(words)}")
    return words


def _number(text: str, where: str) -> int:
    if not text.isdigit():
        raise DataError(f"{where}: '{text}' is no number of a word")
    return int(text)


def told(caption: Caption) -> Sequence[Word]:
    """The words of a caption whose parse the data set tells. Raises DataError where they are not as many."""
    forms = caption.text.split()
    if not caption.parse:
        return ()
    if len(caption.parse) != len(forms):
        raise DataError(
            f"example '{caption.example.id}': a parse of {len(caption.parse)} words, and the caption has {len(forms)}"
        )
    words: list[Word] = []
    place = 0
    for form, (head, relation) in zip(forms, caption.parse, strict=True):
        if not 0 <= head <= len(forms):
            raise DataError(
                f"example '{caption.example.id}': the head of '{form}' is word {head}, and there are {len(forms)}"
            )
        words.append(Word(form, head - 1 if head else None, relation, place, place + len(form)))
        place += len(form)
    return words


def bound(text: str, phrase: Phrase, words: Sequence[Word]) -> list[tuple[str, int, int]]:
    """Words bound to a phrase's head, in either direction: (relation, first character, end in the text)."""
    first, end = (len("".join(text[:place].split())) for place in (phrase.first, phrase.end))
    inside = {place for place, word in enumerate(words) if word.first >= first and word.end <= end}
    heads = [place for place in sorted(inside) if words[place].head not in inside]
    if not heads:
        return []
    head, places = heads[0], characters(text)
    others = [(word.relation, word) for place, word in enumerate(words) if word.head == head and place != head]
    if (above := words[head].head) is not None:
        others.append((words[head].relation, words[above]))
    return [
        (relation, places[word.first], places[word.end - 1] + 1) for relation, word in others if word.end > word.first
    ]


def characters(text: str) -> list[int]:
    """Where the letters of a text stand in it, spaces not counted."""
    return [place for place, letter in enumerate(text) if not letter.isspace()]
