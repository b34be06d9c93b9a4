"""Caption metrics: equal to pycocoevalcap, with Java, without it, and where it fails."""

import shutil
from importlib.metadata import version

import numpy as np
import pytest
from kit.java import COUNTS, fake_java, pairs
from mmgen_metrics import CaptionScores
from mmgen_metrics.meteor import meteor, statistics, summands
from mmgen_metrics.ptb import tokenise
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from mmgen.errors import DataError, UnavailableError

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java, which is not on this machine")
VERSION = version("pycocoevalcap")
BLEU = ("BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4")


def score(*rows, **settings):
    return CaptionScores(**{"meteor": False, "tokenizer": "own", **settings}).build().score(*pairs(*rows))


def test_a_text_equal_to_its_reference_is_perfect():
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


def test_equal_to_pycocoevalcap_on_real_captions(captions):
    rows = captions[:100]
    scores = score(*rows)
    hypotheses = {i: [" ".join(tokenise(text))] for i, (text, *_) in enumerate(rows)}
    references_by_id = {i: [" ".join(tokenise(text)) for text in references] for i, (_, *references) in enumerate(rows)}
    theirs = dict(zip(BLEU, Bleu(4).compute_score(references_by_id, hypotheses, verbose=0)[0], strict=True))
    for name, scorer in (("ROUGE-L", Rouge), ("CIDEr", Cider)):
        theirs[name] = scorer().compute_score(references_by_id, hypotheses)[0]
    assert scores.values == pytest.approx({name: 100 * value for name, value in theirs.items()}, abs=1e-12)
    assert sum(scores.per_example["CIDEr"]) / len(rows) == pytest.approx(scores.values["CIDEr"])


@pytest.mark.slow
@needs_java
def test_equal_to_pycocoevalcap_with_its_own_tokeniser_and_meteor(captions):
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


@pytest.mark.slow
@needs_java
def test_corpus_scores_follow_from_sums_over_any_examples():
    rows = [("what is the red dog", "what is the dog", "a dog"), ("a cat", "two cats here"), ("a b c d e", "a b c d e")]
    config = CaptionScores()
    metric = config.build()
    for some in (rows, rows[:1], rows[1:], [rows[2], *rows]):
        scores = metric.score(*pairs(*some))
        found = {
            column: value
            for name, summands in scores.sums.items()
            for column, value in config.of_sums(name, np.sum(summands, 0)).items()
        }
        assert found == pytest.approx({name: scores.values[name] for name in (*BLEU, "METEOR")}, rel=1e-9)


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
    generations, examples = pairs(("a", "a"), ("b", "b"))
    metric = CaptionScores(meteor=False, tokenizer="own").build()
    for some in (generations[:1], generations[::-1]):
        with pytest.raises(DataError, match="^captioneval: give one text per example, in the order of the examples$"):
            metric.score(some, examples)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "print('warming up', file=sys.stderr)\nsys.exit('Exception in thread \"main\" java.lang.OutOfMemoryError')",
            'METEOR\'s program failed: Exception in thread "main" java.lang.OutOfMemoryError',
        ),
        ("print(*['1.0'] * 23, flush=True)\ntime.sleep(60)", "METEOR's program did not answer within 1 s"),
        ("print('hello')", "METEOR's program returned 'hello\\n' instead of statistics"),
    ],
)
def test_a_java_that_fails_half_way_costs_meteor_only(monkeypatch, tmp_path, body, reason):
    fake_java(tmp_path, monkeypatch, body)
    patience = 1 if "1 s" in reason else 600
    scores = score(("a dog", "a dog"), ("a cat", "the cat"), meteor=True, timeout=patience)
    assert scores.values["METEOR"] is None and scores.values["BLEU-1"] > 0
    assert scores.notes[1] == f"METEOR: unavailable, {reason}"


def test_a_java_that_cannot_tokenise_gives_way_to_our_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "sys.exit('Error: could not find or load main class')")
    scores = score(("a dog's", "a dog's"), tokenizer="auto")
    assert scores.notes[0].startswith(
        "PTB tokeniser: our own (Java's tokeniser failed: Error: could not find or load main class), references"
    )


def test_meteor_s_program_sees_one_line_a_segment_and_no_bars_but_its_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "print('Error:', sys.stdin.readline())")
    with pytest.raises(UnavailableError, match=r"Error: SCORE \|\|\| a cat sat \|\|\| the cat \|\|\| a dog runs\\n"):
        statistics(["a dog\nruns |||"], [["a cat\u2028sat", "the\r\n||| cat"]], 600)


def test_meteor_s_program_is_started_once_and_again_after_it_has_ended(monkeypatch, tmp_path):
    fake_java(
        tmp_path,
        monkeypatch,
        f"open({str(tmp_path / 'starts')!r}, 'a').write('x')\n"
        "for line in sys.stdin:\n    sys.exit(1) if 'fail' in line else print(*[len(line)] * 23, flush=True)",
    )
    counts = [statistics([text], [["a"]], 600)[0, 0] for text in ("b", "four")]
    assert counts[1] - counts[0] == 3 and (tmp_path / "starts").read_text() == "x"
    with pytest.raises(UnavailableError, match="failed"):
        statistics(["b", "fail", "b"], [["a"]] * 3, 600)
    assert statistics(["b"], [["a"]], 600)[0, 0] == counts[0] and (tmp_path / "starts").read_text() == "xx"


def test_meteor_s_formula_equals_its_program():
    sums = summands(np.array([line.split() for line in COUNTS], np.float64))
    assert meteor(sums) == pytest.approx(list(COUNTS.values()), abs=1e-12)
    assert meteor(sums.sum(0)) == pytest.approx(0.4019772548541734, abs=1e-12)
