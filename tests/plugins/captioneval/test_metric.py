"""Caption metrics: equal to pycocoevalcap, with Java and without; our own tokeniser equal to Java's on real texts."""

import csv
import gzip
import io
import json
import shutil
import stat
import subprocess
import sys
from collections import defaultdict
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mmgen_captioneval import CaptionScores, Diversity
from mmgen_captioneval.java import java, one_line, tokenise_all
from mmgen_captioneval.meteor import Program, meteor, statistics
from mmgen_captioneval.ptb import PUNCTUATION, tokenise
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from mmgen.errors import DataError, UnavailableError
from mmgen.tensors import Example, Generation

pytestmark = pytest.mark.slow

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, which is not on this machine")
VERSION = version("pycocoevalcap")
BLEU = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4")


def pairs(*rows):
    """(text, reference, ...) rows as generations and examples."""
    generations = [Generation(str(i), text, (), 0.0) for i, (text, *_) in enumerate(rows)]
    return generations, [Example(str(i), {}, tuple(references)) for i, (_, *references) in enumerate(rows)]


def score(*rows, **settings):
    return CaptionScores(**{"meteor": False, "tokenizer": "own", **settings}).build().score(*pairs(*rows))


def fake_java(folder, monkeypatch, body):
    """A program called java, alone on the PATH."""
    program = folder / "java"
    program.write_text(f"#!{sys.executable}\nimport sys, time\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(folder))


@pytest.fixture(scope="module")
def captions(real_data):
    """COCO's captions by image: 10,131 lists of five or more."""
    images = defaultdict(list)
    with gzip.open(real_data / "coco/captions.json.gz", "rt", encoding="utf-8") as file:
        for row in json.load(file)["annotations"]:
            images[row["image_id"]].append(row["caption"])
    return list(images.values())


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


# --- words


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


@given(st.text(max_size=60))
def test_every_text_has_words_without_spaces_capitals_or_dropped_punctuation(text):
    for word in tokenise(text):
        assert word and word == word.lower() and word not in PUNCTUATION
        assert not set(word) & set(" \t\n")


@pytest.mark.parametrize(
    "text", ["a" * 20000, "a-" * 10000, "a." * 10000, "1," * 10000, "<a" * 5000, "'" * 20000, "?" * 20000, "a/" * 10000]
)
def test_long_nonsense_takes_no_time(text):
    tokenise(text)


def same_words(texts):
    texts = [one_line(text) for text in texts]
    assert [
        (text, a, b) for text, a in zip(texts, tokenise_all(texts, 120), strict=True) if a != (b := tokenise(text))
    ] == []


@needs_java
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_our_words_are_java_s_on_real_captions_and_questions(captions, questions, every):
    texts = [caption for image in captions for caption in image]
    assert len(texts) == 50676 and len(questions) > 35000
    same_words([*texts, *questions][::every])


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


# --- BLEU, ROUGE-L, CIDEr


def test_bleu_from_the_published_counts_of_the_coco_caption_demo():
    scorer = BleuScorer(n=4)
    scorer.crefs = [None]
    scorer.ctest = [
        {"correct": [5732, 2510, 1043, 423], "guess": [9893, 8893, 7893, 6893], "testlen": 9893, "reflen": [9855]}
    ]
    bleu, _ = scorer.compute_score(option="closest", verbose=0)
    assert [round(value, 3) for value in bleu] == [0.579, 0.404, 0.279, 0.191]


def test_of_two_equally_close_references_the_shorter_counts():
    """Three words between references of two and of four: no brevity penalty."""
    values = score(("a b c", "a b", "a b c d"), ("x y z", "x y", "x y z w")).values
    assert values["BLEU-1"] == pytest.approx(100)
    assert score(("a b c", "a b c d"), ("x y z", "x y z w")).values["BLEU-1"] == pytest.approx(
        100 * 2.718281828 ** (1 - 4 / 3)
    )


def test_what_equals_its_reference_is_perfect():
    scores = score(
        ("What is the red dog eating?", "what is the red dog eating"),
        ("Who sits on this chair?", "Who sits on this chair"),
    )
    assert scores.values == pytest.approx({**dict.fromkeys([*BLEU, "ROUGE-L"], 100), "CIDEr": 1000})
    assert {name: [round(value) for value in values] for name, values in scores.per_example.items()} == {
        "BLEU-4": [100, 100],
        "ROUGE-L": [100, 100],
        "CIDEr": [1000, 1000],
    }


def test_cider_is_the_one_that_punishes_length():
    """CIDEr-D: repeating the right words does not help."""
    second_pair = ("Who sits on this chair?", "Who sits on this chair?")
    plain = score(("the red dog eats", "the red dog eats"), second_pair).per_example["CIDEr"][0]
    repeated = score(
        ("the red dog eats the red dog eats the red dog eats", "the red dog eats"), second_pair
    ).per_example["CIDEr"][0]
    assert repeated < plain / 2


def test_equal_to_pycocoevalcap_on_real_captions(captions):
    rows = captions[:400]
    scores = score(*rows)
    hypotheses = {i: [" ".join(tokenise(text))] for i, (text, *_) in enumerate(rows)}
    references_by_id = {i: [" ".join(tokenise(text)) for text in references] for i, (_, *references) in enumerate(rows)}
    theirs = dict(zip(BLEU, Bleu(4).compute_score(references_by_id, hypotheses, verbose=0)[0], strict=True))
    theirs |= {
        "ROUGE-L": Rouge().compute_score(references_by_id, hypotheses)[0],
        "CIDEr": Cider().compute_score(references_by_id, hypotheses)[0],
    }
    assert scores.values == pytest.approx({name: 100 * value for name, value in theirs.items()}, abs=1e-12)
    assert sum(scores.per_example["CIDEr"]) / len(rows) == pytest.approx(scores.values["CIDEr"])


@needs_java
@pytest.mark.parametrize("one_program", [True, pytest.param(False, marks=pytest.mark.exhaustive)])
def test_equal_to_pycocoevalcap_with_its_own_tokeniser_and_meteor(captions, monkeypatch, one_program):
    """METEOR's program loads its paraphrases for eight seconds; with `one_program`, both scorers share one program."""
    from pycocoevalcap.meteor.meteor import Meteor
    from pycocoevalcap.tokenizer import ptbtokenizer

    rows = [*captions[400:500], ["", "a dog"]]
    try:
        tokenizer = ptbtokenizer.PTBTokenizer()
        hypotheses = tokenizer.tokenize({i: [{"caption": row[0]}] for i, row in enumerate(rows)})
        references_by_id = tokenizer.tokenize(
            {i: [{"caption": text} for text in row[1:]] for i, row in enumerate(rows)}
        )
    except PermissionError:
        pytest.skip("pycocoevalcap's tokeniser writes into its own folder, which is read-only here")
    theirs = Meteor()
    overall, per_example = theirs.compute_score(references_by_id, hypotheses)

    def running(command, **_):
        assert command[-6:] == theirs.meteor_cmd[-6:]
        process = theirs.meteor_p
        process.stdin, process.stdout = (io.TextIOWrapper(end, "utf-8") for end in (process.stdin, process.stdout))
        return process

    if one_program:
        known = SimpleNamespace(Popen=running, PIPE=subprocess.PIPE)
        monkeypatch.setattr("mmgen_captioneval.meteor.subprocess", known)
    scores = score(*rows, meteor=True, tokenizer="auto")
    assert scores.values["METEOR"] == pytest.approx(100 * overall, abs=1e-12)
    assert scores.per_example["METEOR"] == pytest.approx([100 * value for value in per_example], abs=1e-12)
    assert scores.values["CIDEr"] == pytest.approx(
        100 * Cider().compute_score(references_by_id, hypotheses)[0], abs=1e-12
    )
    assert list(scores.values) == [*BLEU, "ROUGE-L", "METEOR", "CIDEr"]
    assert scores.notes == (
        "PTB tokeniser: Java's, references grouped per image (4.0 an image), METEOR 1.5, CIDEr-D, pycocoevalcap "
        f"{VERSION}",
    )
    assert score(*rows).values == {name: value for name, value in scores.values.items() if name != "METEOR"}


def test_one_image_has_no_cider_and_says_so():
    scores = score(("a dog", "a dog"))
    assert scores.values["CIDEr"] is None and scores.values["BLEU-1"] == pytest.approx(100)
    assert (
        scores.notes[1]
        == "CIDEr: unavailable, its document frequencies come from the references and one image gives none"
    )


def test_empty_texts_score_nothing():
    scores = score(("", "a dog runs"), ("?", "a cat"), ("a mouse", "a mouse", "?"))
    assert [scores.per_example[name][:2] for name in ("ROUGE-L", "CIDEr")] == [[0, 0], [0, 0]]
    assert "references without a word left out: 1" in scores.notes


def test_bad_input_is_named():
    with pytest.raises(
        DataError, match="^captioneval: example '1' has no reference with a word; add targets or leave the example out$"
    ):
        score(("a", "a"), ("b",))
    with pytest.raises(DataError, match="^captioneval: no examples to score; give at least one$"):
        score()
    generations, examples = pairs(("a", "a"), ("b", "b"))
    metric = CaptionScores(meteor=False, tokenizer="own").build()
    with pytest.raises(
        DataError, match="^captioneval: 1 texts for 2 examples; give one text per example, in the same order$"
    ):
        metric.score(generations[:1], examples)
    with pytest.raises(
        DataError,
        match="^captioneval: expected a text for example '0' but got one for '1'; give texts in the order of the",
    ):
        metric.score(generations[::-1], examples)


# --- METEOR and the lack of Java


def test_meteor_s_program_sees_one_line_a_segment_and_no_bars_but_its_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "print('Error:', sys.stdin.readline())")
    with pytest.raises(UnavailableError, match=r"Error: SCORE \|\|\| a cat sat \|\|\| the cat \|\|\| a dog runs$"):
        statistics(["a dog\nruns |||"], [["a cat\u2028sat", "the\r\n||| cat"]], Program())


COUNTS = {  # the program's SCORE counts and its EVAL scores
    "7 4 3 2 2 2 2 2 0 0 0 0 0 0 0 0 0 0 0 0 3 4 4": 0.38324640284911277,
    "4 5 1 2 0 0 1 1 1 1 0 0 0 0 0 0 1 1 0 0 1 3 3": 0.21976343682412564,
    "6 6 3 3 1 1 3 3 0 0 0 0 2 2 0 0 0 0 0 0 1 6 6": 0.8999999999999999,
    "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0": 0.0,
    "5 3 2 1 2 2 1 1 0 0 0 0 0 0 0 0 0 0 0 0 1 3 3": 0.47743229481671456,
    "2 2 0 0 2 2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 2 2": 1.0,
}


def test_meteor_s_formula_says_what_its_program_does():
    overall, per_example = meteor(np.array([line.split() for line in COUNTS], np.float64))
    assert per_example == pytest.approx(list(COUNTS.values()), abs=1e-12)
    assert overall == pytest.approx(0.4019772548541734, abs=1e-12)


def test_java_s_answers_are_cached(monkeypatch, tmp_path):
    line = " ".join(next(iter(COUNTS)).split())
    answers = f"for line in sys.stdin:\n    print('{line}' if line.startswith('SCORE') else line.rstrip(), flush=True)"
    fake_java(tmp_path, monkeypatch, f"open('{tmp_path}/starts', 'a').write('.')\n{answers}")
    metric = CaptionScores(meteor=True, tokenizer="own").build()
    generations, examples = pairs(("a dog", "a dog"), ("a cat", "the cat"), ("a cat", "the cat"))
    full = metric.score(generations, examples)
    assert metric.score(generations[1:], examples[1:]).values["METEOR"] == pytest.approx(38.324640284911277)
    assert metric.score(generations, examples).values == full.values
    assert (tmp_path / "starts").read_text() == "."


def test_meteor_s_program_is_started_once_for_all_texts_and_again_when_it_has_died(monkeypatch, tmp_path):
    line = " ".join(next(iter(COUNTS)).split())
    answers = f"for line in sys.stdin:\n    print('{line}', flush=True)"
    fake_java(tmp_path, monkeypatch, f"open('{tmp_path}/starts', 'a').write('.')\n{answers}")
    metric = CaptionScores(meteor=True, tokenizer="own").build()
    values = [metric.score(*pairs((text, "a dog"))).values["METEOR"] for text in ("a dog", "the dog")]
    assert values[0] == values[1] and (tmp_path / "starts").read_text() == "."
    process = metric.program.process
    process.kill()
    process.wait()
    assert metric.score(*pairs(("dogs", "a dog"))).values["METEOR"] == values[0]
    assert (tmp_path / "starts").read_text() == ".."
    process = metric.program.process
    del metric
    assert process.poll() is not None  # it ends with the metric


def test_a_java_that_fails_is_not_asked_again(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, f"open('{tmp_path}/starts', 'a').write('.')\nsys.exit('Exception: out of memory')")
    metric = CaptionScores(meteor=True).build()
    notes = [metric.score(*pairs((text, "a dog"), ("a cat", "a cat"))).notes for text in ("a dog", "the dog", "dogs")]
    assert (
        notes[0] == notes[1] == notes[2]
        and notes[0][1] == "METEOR: unavailable, METEOR's program failed: Exception: out of memory"
    )
    assert (tmp_path / "starts").read_text() == ".."  # the tokeniser, and METEOR


def test_without_java_all_but_meteor_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    scores = score(("a dog", "a dog"), ("a cat", "the cat"), meteor=True, tokenizer="auto")
    assert [name for name, value in scores.values.items() if value is None] == ["METEOR"]
    assert "METEOR" not in scores.per_example
    assert scores.notes == (
        "PTB tokeniser: our own (no Java on this machine), references grouped per image (1.0 an image), CIDEr-D, "
        f"pycocoevalcap {VERSION}",
        "METEOR: unavailable, no Java on this machine",
    )
    with pytest.raises(
        UnavailableError, match='^captioneval: tokenizer = "java": no Java on this machine; set tokenizer = "own"$'
    ):
        score(("a", "a"), tokenizer="java")
    with pytest.raises(UnavailableError, match="^no Java on this machine$"):
        java()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "print('warming up', file=sys.stderr)\nsys.exit('Exception in thread \"main\" java.lang.OutOfMemoryError')",
            'METEOR\'s program failed: Exception in thread "main" java.lang.OutOfMemoryError',
        ),
        ("print(*['1.0'] * 23, flush=True)\ntime.sleep(60)", "METEOR's program gave no answer for 0.5 s"),
        ("print('Error: what?', flush=True)\ntime.sleep(60)", "METEOR's program failed: Error: what?"),
        ("print('hello')\nprint('hello')", "METEOR's program answered 'hello' instead of statistics"),
        (
            "sys.stderr.write('x' * 10**6)\nprint('\\n'.join([' '.join(['NaN?'] * 23)] * 2))",
            f"METEOR's program answered {' '.join(['NaN?'] * 23)!r} instead of statistics",
        ),
    ],
)
def test_a_java_that_fails_half_way_costs_meteor_only(monkeypatch, tmp_path, body, reason):
    fake_java(tmp_path, monkeypatch, body)
    patience = 0.5 if "0.5" in reason else 20
    scores = score(("a dog", "a dog"), ("a cat", "the cat"), meteor=True, patience=patience)
    assert scores.values["METEOR"] is None and scores.values["BLEU-1"] > 0
    assert scores.notes[1] == f"METEOR: unavailable, {reason}"


def test_a_java_that_cannot_tokenise_gives_way_to_our_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "sys.exit('Error: could not find or load main class')")
    scores = score(("a dog's", "a dog's"), tokenizer="auto")
    assert scores.notes[0].startswith(
        "PTB tokeniser: our own (Java's tokeniser failed: Error: could not find or load main class), references"
    )


# --- diversity


def diversity(*texts):
    return Diversity().build().score(*pairs(*[(text,) for text in texts])).values


def test_diversity_counts_words_pairs_and_texts():
    values = diversity("What is it?", "what is it", "Who is she?")
    assert values["distinct-1"] == pytest.approx(100 * 5 / 9)
    assert values["distinct-2"] == pytest.approx(100 * 4 / 6)
    assert values["unique"] == pytest.approx(100 * 2 / 3)
    assert diversity("a dog") == {"distinct-1": 100, "distinct-2": 100, "unique": 100, "self-BLEU": None}
    assert diversity() == dict.fromkeys(["distinct-1", "distinct-2", "unique", "self-BLEU"])


def test_self_bleu_runs_from_nothing_in_common_to_all():
    assert diversity(*["the red dog eats"] * 3)["self-BLEU"] == pytest.approx(100)
    assert diversity("the red dog eats", "who sits on chairs")["self-BLEU"] == pytest.approx(0, abs=1e-4)


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=7), min_size=2, max_size=6))
def test_self_bleu_is_bleu_against_all_others(texts):
    lines = [" ".join(text) for text in texts]
    scorer = BleuScorer(n=4)
    for i, line in enumerate(lines):
        scorer += (line, lines[:i] + lines[i + 1 :])
    _, scores = scorer.compute_score(option="closest", verbose=0)
    generations, examples = pairs(*[(line,) for line in lines])
    assert Diversity().build().score(generations, examples).per_example["self-BLEU"] == pytest.approx(
        [100 * x for x in scores[3]]
    )
