"""Answers of people, and how VQA's official evaluation compares them, its slips included (GT-Vision-Lab/VQA,
`PythonEvaluationTools/vqaEvaluation/vqaEval.py`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

AGREE = 0.3  # what an answer weighs for each person who gives it, 1 at most (Antol et al., 2015)
ARTICLES = {"a", "an", "the"}
NUMBERS = {
    word: str(number) for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
}
NUMBERS["none"] = "0"
PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
POINT = re.compile(r"\.(?!\d)")  # also the one behind a number: the official pattern's look behind is misspelt
POINTS = 32  # that are taken out at most: the official code gives re.UNICODE, which is 32, as the count
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
# A word with one of its apostrophes left out -> the word. (The official table has I'm and its like too, which it never
# finds: words are in lower case by then.)
CONTRACTIONS = {
    word[:place] + word[place + 1 :]: word
    for word in CONTRACTED.split()
    for place, letter in enumerate(word)
    if letter == "'"
} | {"somebody'd": "somebodyd"}


@lru_cache(maxsize=1 << 17)
def normalise(text: str) -> str:
    """An answer in lower case, without punctuation and articles, with digits for numbers up to ten and with apostrophes
    in contractions. VQA's official evaluation compares answers so, and vocabularies are made of answers like this."""
    text = tidy(text)
    bare, together = text, THOUSANDS.search(text)
    for mark in PUNCTUATION:
        beside_blank = f"{mark} " in text or f" {mark}" in text
        bare = bare.replace(mark, "" if beside_blank or together else " ")
    words = (NUMBERS.get(word, word) for word in POINT.sub("", bare, count=POINTS).lower().split())
    return " ".join(CONTRACTIONS.get(word, word) for word in words if word not in ARTICLES)


def tidy(text: str) -> str:
    """On one line, without blanks at its ends."""
    return text.replace("\n", " ").replace("\t", " ").strip()


def weights(answers: Iterable[str]) -> dict[str, float]:
    """What each answer weighs to a model that chooses: 0.3 for each person who gave it, 1 at most."""
    return {answer: min(1.0, AGREE * count) for answer, count in Counter(answers).items()}


def comparable(answers: Sequence[str], also: str = "") -> tuple[list[str], str]:
    """People's answers to a question, and another one, as they are compared: normalised, but where all people say the
    same."""
    texts, extra = [tidy(answer) for answer in answers], tidy(also)
    if len(set(texts)) > 1:
        texts, extra = [normalise(answer) for answer in texts], normalise(extra)
    return texts, extra


def accuracy(answer: str, answers: Sequence[str]) -> float:
    """In percent: with one person left out, three others who say the same make an answer right, fewer a part of it; the
    mean over who is left out (Antol et al., 2015)."""
    texts, answer = comparable(answers, answer)
    same = texts.count(answer)
    return 100 * (same * _right(same - 1) + (len(texts) - same) * _right(same)) / len(texts)


def agreement(answers: Sequence[str]) -> float:
    """In percent: what a person's answer reaches among the others', the mean over people."""
    texts, _ = comparable(answers)
    return 100 * sum(_right(texts.count(answer) - 1) for answer in texts) / len(texts)


def _right(people: int) -> float:
    return min(1.0, people / 3)
