"""Dependencies of captions, read from CoNLL-U or from the data set; the words related to a phrase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmgen.errors import DataError
from mmgen.reading.text import read_text

from .phrases import Caption, Phrase

MOST_DIGITS = 9  # of the number of a word
COLUMNS = 10  # ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC


@dataclass(frozen=True)
class Word:
    """A word of a parsed sentence. `head`: index of the word that it depends on, None for the root; `first`, `end`: its
    span in the sentence's letters without spaces, which does not depend on spacing."""

    form: str
    head: int | None
    relation: str
    first: int
    end: int


Parses = Mapping[str, Sequence[Word]]  # a sentence's letters -> its words


def letters(text: str) -> str:
    """A text without case and spaces, the key of its parse."""
    return "".join(text.split()).casefold()


def read(path: Path) -> Parses:
    """Read all sentences of a CoNLL-U file. Raises DataError with file and line."""
    try:
        lines = read_text(path).split("\n")
    except DataError as error:
        raise DataError(f"parses: {error}") from None
    sentences: dict[str, list[Word]] = {}
    rows: list[tuple[str, list[str]]] = []
    for number, line in enumerate([*lines, ""], 1):
        if line.startswith("#"):
            continue
        if line.strip():
            rows.append((f"{path}:{number}", line.split("\t")))
            if len(rows[-1][1]) != COLUMNS:
                raise DataError(
                    f"{path}:{number}: {len(rows[-1][1])} columns; CoNLL-U has {COLUMNS} columns, separated by tabs"
                )
        elif rows:
            words = _words(rows)
            sentences["".join(_original_words(rows)).casefold()] = words
            rows = []
    return sentences


def _original_words(rows: Sequence[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Word forms of the original text: "can't", not its parts "ca" and "n't"."""
    last = 0
    for location, (number, form, *_) in rows:
        if "-" in number:
            last = _parse_number(number.partition("-")[2], location)
        elif "." in number or _parse_number(number, location) <= last:
            continue
        yield "".join(form.split())


def _words(rows: Sequence[tuple[str, Sequence[str]]]) -> list[Word]:
    """Words of a sentence; the words of a multi-word token share its span."""
    words: list[Word] = []
    position, last, shared = 0, 0, (0, 0)
    for location, row in rows:
        number, form = row[0], "".join(row[1].split())
        if "." in number:
            continue  # an empty node
        if "-" in number:
            last, shared = _parse_number(number.partition("-")[2], location), (position, position + len(form))
            position += len(form)
            continue
        if _parse_number(number, location) != len(words) + 1:
            raise DataError(f"{location}: word {number} follows word {len(words)}")
        span = shared if _parse_number(number, location) <= last else (position, position + len(form))
        position = max(position, span[1])
        head = _parse_number(row[6], location)
        words.append(Word(row[1], head - 1 if head else None, row[7], *span))
    for (location, _), word in zip((row for row in rows if row[1][0].isdigit()), words, strict=True):
        if word.head is not None and word.head >= len(words):
            raise DataError(f"{location}: the head is word {word.head + 1}, but the sentence has {len(words)}")
    return words


def _parse_number(text: str, location: str) -> int:
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        raise DataError(f"{location}: '{text:.60}' is not a word number")
    return int(text)


def from_dataset(caption: Caption) -> Sequence[Word]:
    """Words of a caption with the data set's parse; empty without a parse. Raises DataError if their numbers differ."""
    forms = caption.text.split()
    if not caption.parse:
        return ()
    if len(caption.parse) != len(forms):
        raise DataError(
            f"example '{caption.example.id}': the parse has {len(caption.parse)} words, but the caption has "
            f"{len(forms)}"
        )
    words: list[Word] = []
    position = 0
    for form, (head, relation) in zip(forms, caption.parse, strict=True):
        if not 0 <= head <= len(forms):
            raise DataError(
                f"example '{caption.example.id}': the head of '{form}' is word {head}, but the caption has {len(forms)}"
            )
        words.append(Word(form, head - 1 if head else None, relation, position, position + len(form)))
        position += len(form)
    return words


def related_words(text: str, phrase: Phrase, words: Sequence[Word]) -> list[tuple[str, int, int]]:
    """Dependents and parent of a phrase's head word: (relation, first character, end in the text)."""
    first, end = (len("".join(text[:index].split())) for index in (phrase.first, phrase.end))
    inside = {index for index, word in enumerate(words) if word.first >= first and word.end <= end}
    heads = [index for index in sorted(inside) if words[index].head not in inside]
    if not heads:
        return []
    head, indices = heads[0], characters(text)
    neighbours = [(word.relation, word) for index, word in enumerate(words) if word.head == head and index != head]
    if (parent := words[head].head) is not None:
        neighbours.append((words[head].relation, words[parent]))
    return [
        (relation, indices[word.first], indices[word.end - 1] + 1)
        for relation, word in neighbours
        if word.end > word.first
    ]


def characters(text: str) -> list[int]:
    """Positions of the characters of a text that are not spaces."""
    return [index for index, letter in enumerate(text) if not letter.isspace()]
