"""How probable texts are and what fills blanks, asked in Python."""

import pytest
import torch
from kit import small_runs

import mmgen
from mmgen.data.collate import Collator
from mmgen.errors import DataError
from mmgen.examples import Example

pytestmark = pytest.mark.slow

RED, TEXTS = {"caption": "a red dog"}, ["what is the dog?", "is it there?", "i"]


@pytest.fixture(scope="module")
def run():
    return mmgen.load(small_runs.drawn("writes"), step="words")


def test_texts_have_one_answer_alone_and_together(run):
    answer = run.likelihood(RED, TEXTS)
    queries = [RED, {"caption": "two cats by a tent"}, Example("e", RED)]
    together = run.likelihood_all(queries, [TEXTS[:1], TEXTS, TEXTS[1:]])
    for name, text, other in zip(TEXTS, answer.texts, [*together[0].texts, *together[2].texts], strict=True):
        for same in (other, *run.likelihood(RED, name).texts):
            assert same.log_probability == pytest.approx(text.log_probability, abs=1e-5)
            assert same.words == tuple((word, pytest.approx(value, abs=1e-5)) for word, value in text.words)
        values = [value for _, value in text.pieces]
        assert [text.log_probability] * 2 == pytest.approx([sum(values), len(values) * text.score])
        assert sum(value for _, value in text.words) == pytest.approx(sum(values[:-1]))  # the end is no word
        assert text.pieces[-1][0] == "[SEP]" and text.text == name
        assert " ".join(word for word, _ in text.words) == name.replace("?", " ?")


def test_a_text_that_is_cut_has_a_remark(run):
    long = run.likelihood(RED, "what is the dog? " * 9)
    assert long.remarks[0].endswith("only the first 7 are read (max_tokens)") and len(long.texts[0].tokens) == 8


@pytest.mark.parametrize("texts", [[], [3], 3], ids=str)
def test_texts_must_be_texts(run, texts):
    with pytest.raises(DataError, match="query 1: 'texts' must be a list of strings"):
        run.likelihood(RED, texts)


@torch.inference_mode()
def test_fillings_are_the_best_of_all_pairs_of_words(run):
    answer = run.fill(RED, "what [MASK] the [MASK]?", top=4)
    model = run.model
    backbone, batch = model.backbone, Collator(model, ["caption"], predicting=True)([Example("e", RED)])
    tokens = [*model.generator.reader.with_blanks("what [MASK] the [MASK]?"), backbone.end_id]
    first, second = (place for place, token in enumerate(tokens) if token == backbone.mask_id)

    def log_probabilities(texts):
        values = backbone.logits(model.generator.blank_states(model, batch, texts)).log_softmax(-1)
        return values.index_fill(1, torch.tensor([*backbone.forbidden_ids, backbone.end_id]), -torch.inf)

    (of_first,) = log_probabilities([tokens])
    of_second = log_probabilities([[*tokens[:first], id_, *tokens[first + 1 :]] for id_ in range(len(of_first))])
    best = (of_first.unsqueeze(1) + of_second).flatten().topk(4)
    assert [2 * text.score for text in answer.texts] == pytest.approx(best.values.tolist(), abs=1e-4)
    pairs = [divmod(index, len(of_first)) for index in best.indices.tolist()]
    assert [(text.tokens[first], text.tokens[second]) for text in answer.texts] == pairs
    shares = [of_first.exp().topk(4), of_second[pairs[0][0]].exp().topk(4)]
    for words, (values, ids) in zip(answer.blanks, shares, strict=True):
        named = [(backbone.decode_text([id_]), pytest.approx(value)) for id_, value in zip(ids, values, strict=True)]
        assert [*words] == named
    with pytest.raises(DataError, match="has no gap"):
        run.fill(RED, "what")
