"""People's answers compared as in VQA's official evaluation: normalised, weighted, accuracy of one, agreement.

The mistakes of the official evaluation are included (GT-Vision-Lab/VQA,
`PythonEvaluationTools/vqaEvaluation/vqaEval.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from mmgen.errors import DataError

PEOPLE = 10  # who answer a question
AGREE = 0.3  # weight of an answer per person who gave it; the total is at most 1 (Antol et al., 2015)
ARTICLES = {"a", "an", "the"}
NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
NUMBERS["none"] = "0"
PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
POINT = re.compile(r"\.(?!\d)")  # also after a number: the official pattern's lookbehind is misspelt
POINTS = 32  # maximum number of points removed: the official code passes re.UNICODE (32) as the count
THOUSANDS = re.compile(r"\d,\d", re.ASCII)
CONTRACTED = """
    ain't aren't can't could've couldn't couldn't've didn't doesn't don't hadn't hadn't've hasn't haven't he'd he'd've
    he's how'd how'll how's isn't it'd it'd've it'll ma'am mightn't mightn't've might've mustn't must've needn't not've
    o'clock oughtn't 'ow's'at shan't she'd've should've shouldn't shouldn't've somebody'd've somebody'll somebody's
    someone'd someone'd've someone'll someone's something'd something'd've something'll that's there'd there'd've
    there're there's they'd they'd've they'll they're they've 'twas wasn't we'd've we've weren't what'll what're what's
    what've when's where'd where's where've who'd who'd've who'll who's who've why'll why're why's won't would've
    wouldn't wouldn't've y'all y'all'll y'all'd've you'd you'd've you'll you're you've
"""
# A word without one of its apostrophes -> the word. (The official table also has I'm and similar words, but these never
# match, because the text is in lower case by then.)
CONTRACTIONS = {
    word[:place] + word[place + 1 :]: word
    for word in CONTRACTED.split()
    for place, letter in enumerate(word)
    if letter == "'"
} | {"somebody'd": "somebodyd"}


@lru_cache(maxsize=1 << 17)
def normalise(text: str) -> str:
    """Normalise an answer: lower case, no punctuation, no articles, digits for numbers up to ten, apostrophes in
    contractions. VQA's official evaluation compares normalised answers, and vocabularies contain them."""
    text = tidy(text)
    bare, together = text, THOUSANDS.search(text)
    for mark in PUNCTUATION:
        beside_blank = f"{mark} " in text or f" {mark}" in text
        bare = bare.replace(mark, "" if beside_blank or together else " ")
    words = (NUMBERS.get(word, word) for word in POINT.sub("", bare, count=POINTS).lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def tidy(text: str) -> str:
    """Put a text on one line and strip blanks at both ends."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def weights(answers: Iterable[str]) -> dict[str, float]:
    """The training target of each answer: 0.3 per person who gave it, at most 1."""
    return {answer: min(1.0, AGREE * count) for answer, count in Counter(answers).items()}


def most_common(answers: Iterable[str], most: int, path: Path) -> tuple[str, ...]:
    """The `most` most common answers; of equally common answers the first comes first. `path`: their file. Raises
    DataError without any."""
    vocabulary = tuple(answer for answer, _ in Counter(filter(None, answers)).most_common(most))
    if not vocabulary:
        raise DataError(f"{path}: has no answers; give the file with people's answers")
    return vocabulary


def spread_evenly(answers: Sequence[str]) -> tuple[str, ...]:
    """Fewer than ten answers, repeated to ten, as the official accuracy expects: a single answer stands for ten people
    who agree, and an answer that one of three people gave counts as right."""
    return tuple(answers[number % len(answers)] for number in range(max(PEOPLE, len(answers))))


def comparable(answers: Sequence[str], also: str = "") -> tuple[list[str], str]:
    """People's answers to a question, and another answer, in the form in which they are compared: normalised, unless
    all people gave the same answer."""
    texts, extra = [tidy(answer) for answer in answers], tidy(also)
    if len(set(texts)) > 1:
        texts, extra = [normalise(answer) for answer in texts], normalise(extra)
    return texts, extra


def accuracy(answer: str, answers: Sequence[str]) -> float:
    """VQA accuracy of an answer in percent: the number of equal answers among nine people, divided by 3, at most 1;
    the mean over the person left out (Antol et al., 2015)."""
    texts, answer = comparable(answers, answer)
    same = texts.count(answer)
    return 100 * (same * _share_right(same - 1) + (len(texts) - same) * _share_right(same)) / len(texts)


def agreement(answers: Sequence[str]) -> float:
    """Human accuracy in percent: each person's answer scored against the other people's, the mean over people."""
    texts, _ = comparable(answers)
    return 100 * sum(_share_right(texts.count(answer) - 1) for answer in texts) / len(texts)


def _share_right(people: int) -> float:
    return min(1.0, people / 3)
