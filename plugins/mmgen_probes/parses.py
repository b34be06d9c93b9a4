"""Dependencies of captions, read from CoNLL-U or from the data set; the words related to a phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmgen.errors import DataError
from mmgen.reading.text import read_text

from .phrases import Caption, Phrase

COLUMNS = 10  # ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC


@dataclass(frozen=True)
class Word:
    """A word of a parsed sentence. `head`: index of the word that it depends on, -1 for the root; `first`, `end`: its
    span in the sentence's letters without spaces, which does not depend on spacing."""

    head: int
    relation: str
    first: int
    end: int


Parses = Mapping[str, Sequence[Word]]  # a sentence's letters -> its words


def letters(text: str) -> str:
    """A text without case and spaces, the key of its parse."""
    return "".join(text.split()).casefold()


def read(path: Path) -> Parses:
    """Read all sentences of a CoNLL-U file. Raises DataError with file and line."""
    sentences: dict[str, list[Word]] = {}
    rows: list[list[str]] = []
    for number, line in enumerate([*read_text(path).split("\n"), ""], 1):
        columns = line.split("\t")
        if line.strip() and not line.startswith("#"):
            if len(columns) != COLUMNS:
                raise DataError(f"{path}:{number}: {len(columns)} columns; CoNLL-U has {COLUMNS}, separated by tabs")
            if columns[0].isdigit():  # "1-2" is a token whose words follow, "2.1" an empty node
                rows.append(columns)
        elif rows and not line.strip():
            try:
                words = words_of([row[1] for row in rows], [(int(row[6]), row[7]) for row in rows])
            except ValueError:
                raise DataError(f"{path}:{number}: the sentence before has a wrong number of a head") from None
            sentences[letters("".join(row[1] for row in rows))], rows = words, []
    return sentences


def words_of(forms: Sequence[str], parse: Sequence[tuple[int, str]]) -> list[Word]:
    """The words of a sentence with these forms, from the head (from 1, 0 for the root) and the relation of each. Raises
    ValueError if they do not fit."""
    words: list[Word] = []
    for form, (head, relation) in zip(forms, parse, strict=True):
        first = words[-1].end if words else 0
        words.append(Word(head - 1, relation, first, first + len("".join(form.split()))))
    if not all(-1 <= word.head < len(words) for word in words):
        raise ValueError
    return words


def from_dataset(caption: Caption) -> Sequence[Word]:
    """Words of a caption with the data set's parse; empty without a parse. Raises DataError if they do not match."""
    try:
        return words_of(caption.text.split() if caption.parse else [], caption.parse)
    except ValueError:
        raise DataError(f"example '{caption.example.id}': the parse does not match the words of the caption") from None


def related_words(text: str, phrase: Phrase, words: Sequence[Word]) -> list[tuple[str, int, int]]:
    """Dependents and parent of a phrase's head word: (relation, first character, end in the text)."""
    first, end = (len("".join(text[:index].split())) for index in (phrase.first, phrase.end))
    inside = {index for index, word in enumerate(words) if word.first >= first and word.end <= end}
    head = next((index for index in sorted(inside) if words[index].head not in inside), None)
    if head is None:
        return []
    neighbours = [(word.relation, word) for index, word in enumerate(words) if word.head == head != index]
    if words[head].head >= 0:
        neighbours.append((words[head].relation, words[words[head].head]))
    indices = [index for index, letter in enumerate(text) if not letter.isspace()]
    return [
        (relation, indices[word.first], indices[word.end - 1] + 1)
        for relation, word in neighbours
        if word.end > word.first
    ]
