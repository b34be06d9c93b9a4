"""Caption metrics: equal to pycocoevalcap, with Java and without."""

import shutil
from importlib.metadata import version

import numpy as np
import pytest
from mmgen_metrics import CaptionScores
from mmgen_metrics.ptb import tokenise
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.bleu.bleu_scorer import BleuScorer
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from mmgen.errors import DataError
from mmgen.examples import Example, Generation

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
