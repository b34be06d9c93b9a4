"""Texts of the masked generator: cached writing equals naive writing, with every search."""

import pytest
import torch
from kit import naive, toys
from mmgen_encoders import Bert, Roberta
from mmgen_generators.masked_writing import MaskedStepper

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate

CLOSE = 1e-5


def caption(example):
    return resolve(example).inputs["caption"]


@pytest.fixture(scope="module", params=[Bert, pytest.param(Roberta, marks=pytest.mark.slow)], ids=["bert", "roberta"])
def model(request):
    return toys.model(request.param)


def batch_of(model, examples, **more):
    return Collator(model, ["caption"], **more)([resolve(example) for example in examples])


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(Bert, id="bert"),
        pytest.param(Roberta, id="roberta", marks=pytest.mark.slow),
        pytest.param(toys.Albert, id="albert, without a cache", marks=pytest.mark.slow),
    ],
)
def test_cached_greedy_is_naive_greedy(family):
    """Fact 3; an encoder without a cache encodes everything again, with the same result."""
    model, examples = toys.model(family), toys.examples(5)
    for example, (text,) in zip(examples, generate(model, examples), strict=True):
        tokens, score = naive.greedy(model.backbone, naive.text_prefix(model.backbone, caption(example)), 9)
        assert list(text.tokens) == tokens
        assert text.score == pytest.approx(score, abs=1e-4)


@torch.no_grad()
def test_every_step_of_cached_writing_is_exact(model):
    examples = toys.examples(5)
    batch = batch_of(model, examples, objectives=())
    writing = MaskedStepper(model, model.prefix(batch))
    written = torch.empty(len(examples), 0, dtype=torch.long)
    for step in range(6):
        logp = writing.next_logits(written).log_softmax(-1)
        for b, example in enumerate(examples):
            x = naive.text_prefix(model.backbone, caption(example))
            torch.testing.assert_close(
                logp[b], naive.distribution(model.backbone, x, written[b].tolist()), atol=CLOSE, rtol=0
            )
        draw = torch.Generator().manual_seed(step)
        words = torch.randint(5, len(model.backbone.tokenizer), (len(examples), 1), generator=draw)
        written = torch.cat([written, words], 1)


ENDING = {
    "greedy": Decoding(),
    "samples": Decoding(do_sample=True, num_return_sequences=3),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "beams that stop early": Decoding(num_beams=3, early_stopping=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("caches", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize("options", ENDING.values(), ids=ENDING)
def test_inputs_whose_texts_are_decided_leave_and_change_nothing(options, caches, monkeypatch):
    """Texts of all lengths: results do not change when finished inputs leave, and fewer rows are computed."""
    model, examples = toys.model(max_tokens=25, seed=2), toys.examples(12)
    model.backbone.caches = caches
    with torch.no_grad():  # texts that depend on positions and may end anywhere
        model.backbone.model.base_model.embeddings.position_embeddings.weight.mul_(6)
        model.backbone.model.get_output_embeddings().bias[model.backbone.end_id] += 0.5
    states_at, rows = model.backbone.states_at, []
    monkeypatch.setattr(
        model.backbone,
        "states_at",
        lambda slots, mask, cache: rows.append(len(slots.positions)) or states_at(slots, mask, cache),
    )
    results = []
    for leave in (MaskedStepper.leave, lambda self, done: None):
        monkeypatch.setattr(MaskedStepper, "leave", leave)
        torch.manual_seed(0)
        texts = generate(model, examples, options)
        results.append(([[(t.tokens, pytest.approx(t.score, abs=1e-5)) for t in row] for row in texts], sum(rows)))
        rows.clear()
    (texts, fewer), (same, all_of_them) = results
    assert texts == same
    assert len({len(tokens) for row in texts for tokens, _ in row}) > 3, "texts of many lengths"
    assert fewer < 0.9 * all_of_them


def test_beams_are_searched_as_by_a_naive_search(model):
    """Beam search over the naive distributions, two beams, small enough to write out."""
    examples, end, limit = toys.examples(8), model.backbone.end_id, 4
    model.generator.reader.max_tokens, before = limit, model.generator.max_tokens
    try:
        found = generate(model, examples, Decoding(num_beams=2, num_return_sequences=2, length_penalty=1.0))
    finally:
        model.generator.reader.max_tokens = before
    for example, texts in zip(examples, found, strict=True):
        ended = naive_beams(model.backbone, naive.text_prefix(model.backbone, caption(example)), end, limit)
        assert [list(text.tokens) for text in texts] == [tokens for _, tokens in ended]
        assert [text.score for text in texts] == pytest.approx([score for score, _ in ended], abs=1e-4)


def naive_beams(backbone, x, end, limit):
    """(mean log-probability, tokens) of the two best texts. As in transformers, the search is over when two texts have
    ended and the best live one, at its present length, is no better: a longer one might be, but is not looked for."""
    live, ended = [(0.0, [])], []
    for length in range(1, limit + 1):
        grown = []
        for total, tokens in live:
            logp = naive.without_special(backbone, naive.distribution(backbone, x, tokens))
            grown += [(total + value, [*tokens, token]) for token, value in enumerate(logp.tolist())]
        grown.sort(reverse=True)
        over = [(total / length, tokens) for total, tokens in grown[:2] if tokens[-1] == end or length == limit]
        live = [(total, tokens) for total, tokens in grown[:4] if tokens[-1] != end][:2]
        ended = sorted(ended + over, reverse=True)[:2]
        if len(ended) == 2 and live[0][0] / length <= ended[-1][0]:
            break
    return ended


@pytest.mark.slow
def test_sampling_follows_the_distribution(model):
    """First tokens of many samples against the naive distribution, with temperature and top-k applied to it."""
    example = toys.examples(1)[0]
    torch.manual_seed(0)
    samples = [
        generate(model, [example], Decoding(do_sample=True, top_k=3, temperature=2.0, num_return_sequences=100))[0]
        for _ in range(2)
    ]
    firsts = torch.tensor([text.tokens[0] for texts in samples for text in texts])
    logp = naive.distribution(model.backbone, naive.text_prefix(model.backbone, caption(example)), [])
    best = logp.topk(3).indices
    expected = (logp[best] / 2.0).softmax(-1)
    assert set(firsts.tolist()) <= set(best.tolist())
    for token, probability in zip(best.tolist(), expected.tolist(), strict=True):
        assert (firsts == token).float().mean().item() == pytest.approx(probability, abs=0.1)


def test_no_text_ends_before_min_new_tokens(model):
    """Texts that would end sooner continue, and their scores ignore that the end was forbidden."""
    (example,) = toys.examples(1)
    drawn = {"do_sample": True, "temperature": 5.0, "num_return_sequences": 50}
    torch.manual_seed(0)
    (free,), (texts,) = (generate(model, [example], Decoding(min_new_tokens=n, **drawn)) for n in (0, 5))
    end, x = model.backbone.end_id, naive.text_prefix(model.backbone, caption(example))
    assert any(end in text.tokens[:5] for text in free) and not any(end in text.tokens[:5] for text in texts)
    for text in texts[:2]:
        tokens = list(text.tokens)
        logp = [float(naive.distribution(model.backbone, x, tokens[:t]).detach()[y]) for t, y in enumerate(tokens)]
        assert text.score == pytest.approx(sum(logp) / len(logp), abs=1e-4)


@pytest.mark.slow
def test_embeddings_padded_beyond_the_words_are_never_written():
    model = toys.model()
    words = len(model.backbone.tokenizer)
    model.backbone.model.resize_token_embeddings(words + 7)
    for options in ENDING.values():
        for texts in generate(model, toys.examples(3), options):
            assert all(max(text.tokens) < words for text in texts)


@pytest.mark.slow
@torch.no_grad()
def test_long_writing_with_rows_repeated_and_reordered_is_exact():
    """Sixteen steps of three rows that are exchanged at every step; equal to re-encoding."""
    model, example = toys.model(max_tokens=40), toys.examples(1)[0]
    writing = MaskedStepper(model, model.prefix(batch_of(model, [example], objectives=())))
    x, written = naive.text_prefix(model.backbone, caption(example)), torch.empty(3, 0, dtype=torch.long)
    draw = torch.Generator().manual_seed(0)
    for step in range(16):
        logp = writing.next_logits(written).log_softmax(-1)
        if step % 5 == 0:
            for row in range(3):
                torch.testing.assert_close(
                    logp[row], naive.distribution(model.backbone, x, written[row].tolist()), atol=CLOSE, rtol=0
                )
        rows = torch.randint(0, 3, (3,), generator=draw)
        written = torch.cat([written[rows], torch.randint(5, 30, (3, 1), generator=draw)], 1)
        writing.reorder_cache(rows)
