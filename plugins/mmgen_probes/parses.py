"""Dependencies of captions, read from CoNLL-U or from the data set; the words related to a phrase."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
            rows.append([columns[0], columns[1], columns[6], columns[7]])
        elif rows and not line.strip():
            try:
                text, words = _read_words(rows)
            except ValueError:
                raise DataError(f"{path}:{number}: the sentence before has a wrong number of a word or head") from None
            sentences[letters(text)], rows = words, []
    return sentences


def _read_words(rows: Iterable[Sequence[str]]) -> tuple[str, list[Word]]:
    """The letters and words of rows (number, form, head, relation). The words of "1-2 can't" share its letters; "2.1"
    is an empty node. Raises ValueError."""
    text, last, span = "", 0, (0, 0)
    words: list[Word] = []
    for number, form, head, relation in rows:
        if "." in number:
            continue
        start, _, end = number.partition("-")
        if end or int(start) > last:  # not a part of a longer token
            last = int(end or start)
            span = len(text), len(text) + len("".join(form.split()))
            text += "".join(form.split())
        if not end:
            words.append(Word(int(head) - 1, relation, *span))
            if int(start) != len(words):
                raise ValueError
    if not all(-1 <= word.head < len(words) for word in words):
        raise ValueError
    return text, words


def from_dataset(caption: Caption) -> Sequence[Word]:
    """Words of a caption with the data set's parse; empty without a parse. Raises DataError if they do not match."""
    forms = caption.text.split() if caption.parse else []
    try:
        pairs = enumerate(zip(forms, caption.parse, strict=True), 1)
        return _read_words((str(number), form, str(head), name) for number, (form, (head, name)) in pairs)[1]
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
