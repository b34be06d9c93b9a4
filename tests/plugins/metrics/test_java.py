"""Java: answers are cached, and a failing Java affects only the scores that need it."""

from importlib.metadata import version

import pytest
from kit.java import fake_java, pairs
from mmgen_metrics import CaptionScores

from mmgen.errors import UnavailableError

pytestmark = pytest.mark.slow


VERSION = version("pycocoevalcap")


def score(*rows, **settings):
    return CaptionScores(**{"meteor": False, "tokenizer": "own", **settings}).build().score(*pairs(*rows))


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
