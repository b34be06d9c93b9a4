"""Remarks on texts: a model that writes nothing or the same for every input; a text that stutters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

FEWEST = 5  # equal texts; fewer mean nothing
TWICE = re.compile(r"\b(\w+)\s+\1\b|\b(\w+(?:\W+\w+){1,11})\W+\2\b", re.IGNORECASE)  # "the the", "the dog the dog"
MEND = "the texts say little about the input; train longer or with another learning rate, and check the loss curve"


def collapsed(texts: Sequence[str]) -> str:
    """A remark if at least half of the texts have no word, or are the same; "" otherwise."""
    wordless = sum(not any(letter.isalnum() for letter in text) for text in texts)
    if len(texts) > 1 and 2 * wordless >= len(texts):
        return f"{wordless} of {len(texts)} texts contain no word; {MEND}"
    text, count = next(iter(Counter(texts).most_common(1)), ("", 0))
    if count >= FEWEST and 2 * count >= len(texts):
        return f"{count} of {len(texts)} texts are the same ('{text[:60]}'); {MEND}"
    return ""


def repeats_itself(text: str) -> str:
    """A remark if a text has no word, or has words twice in a row; "" otherwise."""
    if not any(letter.isalnum() for letter in text):
        return "the text contains no word"
    if twice := TWICE.search(text):
        return f"the text stutters: '{twice[0][:60]}'"
    return ""
