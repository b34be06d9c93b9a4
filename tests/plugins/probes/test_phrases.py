"""Captions whose phrases are known to be in places of the picture, and their parses."""

import json
from dataclasses import replace

import pytest
from kit.probes import EXAMPLES, FACTS, subject
from kit.refusals import refusal
from mmgen_probes import Grounding, parses, phrases

CONLLU = """# text = a red cat near the water
1\ta\ta\tDET\t_\t_\t3\tdet\t_\t_
2\tred\tred\tADJ\t_\t_\t3\tamod\t_\t_
3\tcat\tcat\tNOUN\t_\t_\t0\troot\t_\t_
4\tnear\tnear\tADP\t_\t_\t6\tcase\t_\t_
5\tthe\tthe\tDET\t_\t_\t6\tdet\t_\t_
6\twater\twater\tNOUN\t_\t_\t3\tnmod\t_\t_

1-2\tCan't\t_\t_\t_\t_\t_\t_\t_\t_
1\tCa\tcan\tAUX\t_\t_\t0\troot\t_\t_
2\tn't\tnot\tPART\t_\t_\t1\tadvmod\t_\t_
2.1\tsee\tsee\tVERB\t_\t_\t_\t_\t_\t_
3\tit\tit\tPRON\t_\t_\t1\tobj\t_\t_
"""


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_words_bound_to_a_phrase_are_found_in_both_directions(tmp_path):
    (tmp_path / "captions.conllu").write_text(CONLLU)
    sentences = parses.read(tmp_path / "captions.conllu")
    assert list(sentences) == ["aredcatnearthewater", "can'tit"]
    text = "a red  cat near the water"  # spaced in another way
    words = sentences[parses.letters(text)]
    cat = parses.related_words(text, phrases.Phrase(0, 10, ()), words)
    assert [(relation, text[first:end]) for relation, first, end in cat] == [
        ("det", "a"),
        ("amod", "red"),
        ("nmod", "water"),
    ]
    water = parses.related_words(text, phrases.Phrase(16, 25, ()), words)
    assert [(relation, text[first:end]) for relation, first, end in water] == [
        ("case", "near"),
        ("det", "the"),
        ("nmod", "cat"),
    ]
    assert [(word.first, word.end) for word in sentences["can'tit"]] == [(0, 2), (2, 5), (5, 7)]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_relations_come_from_the_data_set(tmp_path):
    """Without a file, from its facts; a parse that does not fit its caption is named."""
    (tmp_path / "captions.conllu").write_text(CONLLU)
    parse = [(3, "det"), (3, "amod"), (0, "root"), (6, "case"), (6, "det"), (3, "nmod")]
    known = [replace(entry, facts={**FACTS, "parses": [parse, [[2, "det"], [0, "root"]]]}) for entry in EXAMPLES]
    saved = []
    for name, examples, config in (
        ("file", EXAMPLES, Grounding(parses=tmp_path / "captions.conllu")),
        ("facts", known, Grounding()),
    ):
        (tmp_path / name).mkdir()
        result = config.build().run(subject("image caption", examples=examples), tmp_path / name)
        saved.append(json.loads((tmp_path / name / "grounding.json").read_text())["s0"])
    assert (tmp_path / "facts" / result.plots["Grounding by relation of s0"]).exists()
    assert saved[1].pop("det")["count"] == 12  # the second caption has one too, and the file does not know it
    assert saved[0].pop("det")["count"] == 8 == saved[0]["nmod"]["count"]
    assert saved[0] == saved[1] and set(saved[0]) == {"entities", "nmod", "amod", "case"}
    wrong = [replace(entry, facts={**FACTS, "parses": [parse[:-1]]}) for entry in EXAMPLES]
    message = refusal(Grounding().build().run, subject("image caption", examples=wrong), tmp_path / "facts")
    assert message == "example 'e0': the parse does not match the words of the caption"
