"""Search over a stepper whose next-token distributions are a table."""

import itertools
from math import isclose
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mmgen.decoding import Decoding
from mmgen.sampling import derive, draw
from mmgen.search import search

END, WORDS, LONGEST = 0, 4, 3
LIMITS: Any = SimpleNamespace(end_id=END, pad_id=3, tokenizer=range(WORDS), forbidden_ids=()), LONGEST


class Table:
    """B inputs, each with a distribution of the next token for every beginning of a text."""

    def __init__(self, inputs: int = 2) -> None:
        generator = torch.Generator().manual_seed(0)
        beginnings = [p for n in range(LONGEST) for p in itertools.product(range(WORDS), repeat=n)]
        self.logits = [{p: 2 * torch.randn(WORDS, generator=generator) for p in beginnings} for _ in range(inputs)]
        self.written: list[torch.Tensor] = []
        self.rows: list[torch.Tensor] = []

    def next_logits(self, written):
        self.written.append(written.clone())
        rows = len(written) // len(self.logits)
        return torch.stack([self.logits[row // rows][tuple(text)] for row, text in enumerate(written.tolist())])

    def reorder_cache(self, rows):
        self.rows.append(rows.clone())

    def texts(self, of: int):
        """(log-probability, tokens) of every text of an input."""
        for length in range(1, LONGEST + 1):
            for text in itertools.product(range(WORDS), repeat=length):
                ends = [place for place, token in enumerate(text) if token == END]
                if ends == [length - 1] or (not ends and length == LONGEST):
                    shares = [self.logits[of][text[:t]].log_softmax(-1)[token] for t, token in enumerate(text)]
                    yield float(sum(shares)), [*text]


START = torch.tensor([[1], [1]])


def test_greedy_takes_the_likeliest_token_until_the_end_and_scores_are_means():
    table = Table()
    for of, (tokens, score) in enumerate(search(table, START, Decoding(), *LIMITS)):
        expected: list[int] = []
        while len(expected) < LONGEST and END not in expected:
            expected.append(int(table.logits[of][tuple(expected)].argmax()))
        assert tokens == expected
        assert isclose(
            score, dict((tuple(t), s) for s, t in table.texts(of))[tuple(tokens)] / len(tokens), abs_tol=1e-5
        )
    assert [written.shape[1] for written in table.written] == [*range(len(table.written))]


@pytest.mark.parametrize("size", [1, 2])
def test_no_n_gram_is_written_twice(size):
    table = Table()
    for logits in table.logits:
        for beginning in logits:
            logits[beginning][2] += 9  # greedy search would write "2 2 2"
    for of, (tokens, _) in enumerate(search(table, START, Decoding(no_repeat_ngram_size=size), *LIMITS)):
        text = START[of].tolist()
        while len(text) <= LONGEST and END not in text:
            grams = [text[i : i + size] for i in range(len(text))]
            allowed = [word for word in range(WORDS) if [*text, word][-size:] not in grams]
            text.append(max(allowed, key=table.logits[of][tuple(text[1:])].tolist().__getitem__))
        assert tokens == text[1:] != [2, 2, 2]


@pytest.mark.parametrize("penalty", [1.0, 0.0])
def test_enough_beams_find_the_best_texts_in_order(penalty):
    table, beams = Table(), WORDS**LONGEST
    options = Decoding(num_beams=beams, num_return_sequences=5, length_penalty=penalty)
    results = search(table, START, options, *LIMITS)
    for of in range(2):
        ranked = sorted(table.texts(of), key=lambda row: row[0] / len(row[1]) ** penalty, reverse=True)
        for (tokens, score), (total, text) in zip(results[5 * of : 5 * of + 5], ranked[:5], strict=True):
            assert tokens == text and isclose(score, total / len(text), abs_tol=1e-5)
    for rows in table.rows:  # rows of an input stay with it
        assert (rows // beams).tolist() == [row // beams for row in range(len(rows))]


def test_samples_have_the_distribution_of_the_table():
    table, draws = Table(1), 4000
    torch.manual_seed(0)
    options = Decoding(do_sample=True, num_return_sequences=1000, top_k=0)
    results = [result for _ in range(draws // 1000) for result in search(table, START[:1], options, *LIMITS)]
    shares = [(tuple(text), pow(2.718281828459045, score)) for score, text in table.texts(0)]
    assert isclose(sum(share for _, share in shares), 1, abs_tol=1e-4)
    drawn = [tuple(tokens) for tokens, _ in results]
    likely = [(text, share) for text, share in shares if draws * share > 5]
    statistic = sum((drawn.count(text) - draws * share) ** 2 / (draws * share) for text, share in likely)
    assert statistic < len(likely) + 4 * (2 * len(likely)) ** 0.5


def test_a_text_depends_on_its_seed_alone():
    """Alone, among others, and as the first of several: rules that narrow the distribution hold."""
    torch.manual_seed(0)
    options, tables = Decoding(do_sample=True, num_return_sequences=20), [Table(), Table()]
    tables[1].logits = tables[1].logits[1:]
    seeds = torch.tensor([3, 4])
    together = search(tables[0], START, options, *LIMITS, seeds)
    assert search(tables[1], START[:1], options, *LIMITS, seeds[1:]) == together[20:]
    assert len({tuple(tokens) for tokens, _ in together[20:]}) > 5
    assert search(tables[1], START[:1], options, *LIMITS, seeds[:1]) != together[20:]
    first = options.model_copy(update={"num_return_sequences": 1})
    assert search(tables[1], START[:1], first, *LIMITS, seeds[1:]) == together[20:21]
    for narrow in ({"top_k": 2}, {"top_p": 0.5}, {"min_p": 0.6}):
        for tokens, _ in search(tables[1], START[:1], options.model_copy(update=narrow), *LIMITS, seeds[1:]):
            for place, token in enumerate(tokens):
                shares = tables[1].logits[0][tuple(tokens[:place])].softmax(-1)
                larger = shares[shares > shares[token]]
                assert len(larger) < narrow.get("top_k", WORDS)
                assert larger.sum() < narrow.get("top_p", 2) and shares[token] >= narrow.get("min_p", 0) * shares.max()


@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_draws_have_the_distribution_that_they_are_drawn_from(temperature):
    """Chi-square over seeds that follow one another, over steps, and over pairs of neighbours."""
    shares = (torch.tensor([2.0, 1.0, 0.0, -1.0]) / temperature).softmax(-1)
    count = 20_000
    for seeds in (torch.arange(count), derive(torch.tensor(7), torch.arange(count))):
        drawn = draw(shares.expand(count, -1), seeds)
        pairs = drawn[::2] * WORDS + drawn[1::2]
        for values, expected in ((drawn, shares), (pairs, torch.outer(shares, shares).flatten())):
            expected = expected * len(values)
            statistic = float(((values.bincount(minlength=len(expected)) - expected) ** 2 / expected).sum())
            assert statistic < len(expected) + 4 * (2 * len(expected)) ** 0.5
