"""Words of the caption evaluation: our own tokeniser equals Java's on real texts."""

import csv
import json
import shutil

import pytest
from mmgen_metrics.java import one_line, tokenise_all
from mmgen_metrics.ptb import tokenise

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, which is not on this machine")
slow = pytest.mark.slow  # Java takes seconds


@pytest.fixture(scope="module")
def questions(real_data):
    """The questions of OK-VQA and VQG_COCO."""
    texts = []
    for split in ("train", "val"):
        file = real_data / f"okvqa/OpenEnded_mscoco_{split}2014_questions.json"
        texts += [row["question"] for row in json.loads(file.read_text(encoding="utf-8"))["questions"]]
    assert len(texts) == 9009 + 5046
    for split in ("train", "val", "test"):
        with (real_data / f"vqg_coco/coco_{split}_all.csv").open(encoding="utf-8", newline="") as file:
            texts += [question for row in csv.DictReader(file) for question in row["questions"].split("---")]
    return texts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("What is the man's dog doing?", "what is the man 's dog doing"),
        ("Why can't they cannot?", "why ca n't they can not"),
        ("Don’t you think it’s a well-known T-shirt?", "do n't you think it 's a well-known t-shirt"),
        ('A sign says "STOP", near a U.S. flag (red).', "a sign says stop near a u.s. flag -lrb- red -rrb-"),
        ("It's 2:30 p.m. on Main St. already", "it 's 2:30 p.m. on main st. already"),
        ("He took vitamin C. The end.", "he took vitamin c the end"),
        ("Is it o'clock?? 1,000 cats & 50% dogs...", "is it o'clock ?? 1,000 cats & 50 % dogs"),
        ("What's 1/2 of the Ph.D.-and/or no. 5?", "what 's 1/2 of the ph.d. and/or no. 5"),
        ("", ""),
        ("?", ""),
        ("café 猫 😀 naïve", "café 猫 naïve"),
    ],
)
def test_words_of_the_caption_evaluation(text, words):
    assert tokenise(text) == words.split()


@pytest.mark.parametrize(
    "text", ["a" * 20000, "a-" * 10000, "a." * 10000, "1," * 10000, "<a" * 5000, "'" * 20000, "?" * 20000, "a/" * 10000]
)
def test_long_nonsense_takes_no_time(text):
    """A pattern that tried all ways would take years."""
    assert sum(map(len, tokenise(text))) <= len(text)


def same_words(texts):
    texts = [one_line(text) for text in texts]
    assert [
        (text, a, b) for text, a in zip(texts, tokenise_all(texts, 120), strict=True) if a != (b := tokenise(text))
    ] == []


@slow
@needs_java
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_our_words_are_java_s_on_real_captions_and_questions(captions, questions, every):
    texts = [caption for image in captions for caption in image]
    assert len(texts) == 50676 and len(questions) > 35000
    same_words([*texts, *questions][::every])


@slow
@needs_java
def test_a_text_s_words_by_java_do_not_depend_on_its_neighbours():
    texts = ["", "a road sign with a K.", "A dog", "one <b", "two> three", "", "x", "two\nlines\u2028three", "\ud800"]
    texts = [one_line(text) for text in texts]
    together = tokenise_all(texts, 60)
    assert together == [tokenise_all([text], 60)[0] for text in texts]
    assert (
        together[0] == []
        and " ".join(together[1]) == "a road sign with a k."
        and together[7] == ["two", "lines", "three"]
    )
