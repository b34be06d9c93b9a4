"""Collapse: what a person should know where a model writes nothing, or the same of everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

FEWEST = 10  # texts; of fewer, equal ones say nothing
REPEATED = 8  # words; fewer may be alike by chance
MEND = "the model says little of its input: train it for longer or at another rate, and look at the loss"


def collapsed(texts: Sequence[str]) -> str:
    """What half of the texts or more have in common: no word, or all words. "" where they are well."""
    wordless = sum(not any(letter.isalnum() for letter in text) for text in texts)
    if texts and 2 * wordless >= len(texts):
        return f"{wordless} of {len(texts)} texts have no word in them; {MEND}"
    if len(texts) >= FEWEST:
        ((text, count),) = Counter(texts).most_common(1)
        if 2 * count >= len(texts):
            return f"{count} of {len(texts)} texts are the same ('{text[:60]}'); {MEND}"
    return ""


def repeats_itself(text: str) -> str:
    """What is wrong with one text: no word, or few words again and again. "" where it is well."""
    words = text.split()
    if not any(letter.isalnum() for letter in text):
        return "the text has no word in it"
    if len(words) >= REPEATED and 3 * len(set(words)) <= len(words):
        return f"the text repeats itself: {len(words)} words, {len(set(words))} of them different"
    return ""
