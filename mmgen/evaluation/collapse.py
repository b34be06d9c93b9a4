"""A remark on texts: a model that writes nothing or the same for every input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

FEWEST = 5  # equal texts; fewer mean nothing
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
