"""Remarks on empty texts: a model that writes nothing or the same for every input, a text that repeats itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

FEWEST = 10  # texts; among fewer, equal texts mean nothing
REPEATED = 8  # words; in shorter texts, repetition may be chance
MEND = "the texts say little about the input; train longer or with another learning rate, and check the loss curve"


def collapsed(texts: Sequence[str]) -> str:
    """A remark if at least half of the texts have no word, or are the same; "" otherwise."""
    wordless = sum(not any(letter.isalnum() for letter in text) for text in texts)
    if texts and 2 * wordless >= len(texts):
        return f"{wordless} of {len(texts)} texts contain no word; {MEND}"
    if len(texts) >= FEWEST:
        ((text, count),) = Counter(texts).most_common(1)
        if 2 * count >= len(texts):
            return f"{count} of {len(texts)} texts are the same ('{text[:60]}'); {MEND}"
    return ""


def repeats_itself(text: str) -> str:
    """A remark if a text has no word, or repeats few words; "" otherwise."""
    words = text.split()
    if not any(letter.isalnum() for letter in text):
        return "the text contains no word"
    if len(words) >= REPEATED and 3 * len(set(words)) <= len(words):
        return f"the text repeats itself: {len(words)} words, {len(set(words))} of them different"
    return ""
