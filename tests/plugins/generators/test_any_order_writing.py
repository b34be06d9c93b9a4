"""Writing in any order: how many tokens a pass keeps, what is sampled, given words, and the cache."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
import torch
from kit import toys
from kit.any_order import any_order
from kit.refusals import refusal
from mmgen_generators import AnyOrderDecoding
from mmgen_generators.any_order_writing import Writer
from mmgen_generators.open_places import masked_again

from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.examples import Example

pytestmark = pytest.mark.slow

EXAMPLES = [resolve(example) for example in toys.examples(4, seed=5)]
LENGTHS = [{}, {"length": "end"}, {"length": "end", "block": 4}]


def writer(model, examples=EXAMPLES, cached=True, **options):
    batch = Collator(model, ["caption"], ["generator"], predicting=True)(examples)
    return Writer(model.generator, model, batch, AnyOrderDecoding(**options), cached)


@torch.no_grad()
def best(model, *more, **options):
    return [texts[0] for texts in writer(model, *more, **options).texts()]


def partly_written(text, caption="red ball"):
    return resolve(Example("gaps", {"caption": caption}, labels={"text": text}))


def passes_of(text):
    """How many tokens were open before each pass, and after the last."""
    return [len(text.passes[0])] + [sum(token == MASK_ID for token in ids) for ids in text.passes]


MASK_ID = any_order().backbone.mask_id


@pytest.mark.parametrize("keys", LENGTHS, ids=str)
def test_as_many_steps_as_places_and_a_threshold_of_one_are_one_token_per_pass(keys):
    model = any_order(**keys)
    default, steps, threshold = (best(model, **options) for options in ({}, {"steps": 9}, {"threshold": 1.0}))
    assert default == steps == threshold
    for text in default:
        opens = [sum(token == MASK_ID for token in ids) for ids in text.passes]
        assert all(before - after <= 1 for before, after in itertools.pairwise(opens))
        assert opens[-1] == 0 and text.passes[-1] == text.tokens


@pytest.mark.parametrize("keys", LENGTHS, ids=str)
def test_a_text_has_no_mask_and_no_special_token_but_its_end(keys):
    model = any_order(**keys)
    banned = {*model.backbone.tokenizer.all_special_ids} - {model.backbone.end_id}
    with torch.no_grad():  # what is refused would be the likeliest by far
        model.backbone.model.cls.predictions.bias[list(banned)] += 50
    for options in ({}, {"steps": 2}, {"steps": 3, "remask": True}, {"temperature": 2.0}):
        for text in best(model, **options):
            assert not banned & {*text.tokens}
            assert model.backbone.end_id not in text.tokens[:-1]


@pytest.mark.parametrize("keys", LENGTHS, ids=str)
def test_the_cache_of_inputs_and_finished_blocks_changes_nothing(keys):
    model = any_order(**keys)
    for options in ({}, {"steps": 2}, {"steps": 3, "remask": True}):
        with_cache, without = (best(model, cached=cached, **options) for cached in (True, False))
        assert [text.tokens for text in with_cache] == [text.tokens for text in without]
        assert [text.score for text in with_cache] == pytest.approx([text.score for text in without], abs=1e-5)


def test_mask_predict_masks_the_least_probable_tokens_again():
    """After pass k of N, floor(places (N - k) / N) places are open: those whose tokens had the lowest probabilities."""
    model = any_order(length="end", max_tokens=7)
    with torch.no_grad():
        model.backbone.model.cls.predictions.bias[model.backbone.end_id] -= 50
    assert all(passes_of(text) == [7, 4, 2, 0] for text in best(model, steps=3, remask=True))
    log_prob, places = torch.tensor([[[-0.1, -3.0, -2.0, -1.0]]]), torch.ones(1, 1, 4, dtype=torch.bool)
    options = AnyOrderDecoding(steps=4, remask=True)  # as in Ghazvininejad et al., 2019, section 3.3
    again = [masked_again(log_prob, places, number, options)[0, 0].tolist() for number in range(4)]
    assert [sum(row) for row in again] == [3, 2, 1, 0]
    assert again[0] == [False, True, True, True] and again[2] == [False, True, False, False]


def test_a_threshold_keeps_what_is_surer_and_at_least_one():
    model = any_order(length="end", max_tokens=7)
    assert all(len(text.passes) == 1 for text in best(model, threshold=1e-9))
    for text in best(model, threshold=0.05):
        opens = passes_of(text)
        assert all(before > after for before, after in itertools.pairwise(opens)), opens


def test_left_to_right_writes_left_to_right():
    for text in best(any_order(), order="left_to_right"):
        for ids in text.passes:
            gaps = [place for place, token in enumerate(ids) if token == MASK_ID]
            assert gaps == list(range(len(ids) - 1 - len(gaps), len(ids) - 1))


def test_random_order_at_temperature_one_has_the_enumerated_distribution():
    """A text of two places over a vocabulary that is cut to four words: 3,000 samples against the probabilities summed
    over both orders (chi-square with 15 degrees of freedom, 99.9 % quantile 37.7)."""
    model = any_order()
    words = model.backbone.encode_text("red ball dog near")
    with torch.no_grad():
        bias = model.backbone.model.cls.predictions.bias
        keep = torch.zeros_like(bias).index_fill(0, torch.tensor(words), 100.0)
        bias += keep
    example = partly_written("[MASK] [MASK]", "tree")

    def shares(text, place):
        """The distribution at a place of a partly written text."""
        prefix = model.prefix(Collator(model, ["caption"])([replace(example, targets=("red",))]))
        reader = model.generator.reader
        tokens = [*text, model.backbone.end_id]
        tail, _ = reader._build_tail([[tokens]], [[[token == MASK_ID for token in text]]])
        rows = prefix.slots.followed_by(model.behind(prefix, tail))
        states = model.backbone.encode(rows).last[0, prefix.slots.positions.shape[1] + place]
        return model.backbone.logits(states)[words].double().softmax(-1).tolist()

    with torch.no_grad():
        first = [shares([MASK_ID, MASK_ID], place) for place in (0, 1)]
        expected = {}
        for a, b in itertools.product(range(4), repeat=2):
            left = first[0][a] * shares([words[a], MASK_ID], 1)[b]
            right = first[1][b] * shares([MASK_ID, words[b]], 0)[a]
            expected[words[a], words[b]] = (left + right) / 2
        assert sum(expected.values()) == pytest.approx(1, abs=1e-6)
        torch.manual_seed(0)
        count, counts = 3000, Counter()
        for _ in range(3):
            options = {"temperature": 1.0, "order": "random", "num_return_sequences": 20}
            counts.update(
                text.tokens[:2] for texts in writer(model, [example] * 50, **options).texts() for text in texts
            )
    assert {*counts} <= {*expected}
    statistic = sum((counts[pair] - count * share) ** 2 / (count * share) for pair, share in expected.items())
    assert statistic < 37.7, (statistic, counts)
    assert max(expected.values()) > 3 * min(expected.values())  # a uniform draw would fail


@pytest.mark.parametrize("keys", [*LENGTHS, {"length": "end", "block": 1}], ids=str)
def test_given_words_never_change(keys):
    model = any_order(max_tokens=10, **keys)
    with torch.no_grad():  # an end in a gap, which would cut the words behind it, would be the likeliest by far
        model.backbone.model.cls.predictions.bias[model.backbone.end_id] += 50
    examples = [
        partly_written("what [MASK] [MASK] the dog"),
        EXAMPLES[0],
        partly_written("[MASK] color"),
        partly_written("where is the [MASK]"),
    ]
    encode, end = model.backbone.encode_text, model.backbone.end_id
    parts = [("what", 2, "the dog"), None, ("", 1, "color"), ("where is the", 1, "")]
    for options in ({}, {"steps": 1}, {"steps": 2, "remask": True}, {"temperature": 2.0}):
        texts = best(model, examples, **options)
        for text, part in zip(texts, parts, strict=True):
            if part is None:
                continue
            before, gaps, after = encode(part[0]) if part[0] else [], part[1], encode(part[2]) if part[2] else []
            tokens = [*text.tokens]
            assert tokens[: len(before)] == before and tokens[len(before) + gaps :] == [*after, end]
            assert not {MASK_ID, end} & {*tokens[:-1]}
            for ids in text.passes:
                assert [*ids[: len(before)], *ids[len(before) + gaps :]] == [*before, *after, end]
    (alone,) = best(model, [examples[0]])
    assert best(model, examples)[0].tokens == alone.tokens


def test_a_partly_written_text_that_does_not_fit_is_refused():
    model = any_order()
    for text, message in (
        (3, "'text' must be a string with [MASK] where a token is missing, not 3"),
        ("what color", "'text' has no gap ('what color'); write [MASK] for each token to fill in"),
        ("[MASK] " * 9, "'text' has 9 tokens, but max_tokens is 9, including the end; use a shorter text"),
        ("what [SEP] [MASK]", "'text' has '[SEP]', which the encoder's vocabulary cannot write; replace it"),
    ):
        assert refusal(writer, model, [partly_written(text)]) == message


def test_several_texts_differ():
    torch.manual_seed(0)
    for keys in ({}, {"length": "end", "block": 4}):
        options = AnyOrderDecoding(num_return_sequences=5, temperature=0.5)
        for texts in generate(any_order(**keys), EXAMPLES, options):
            assert len({text.tokens for text in texts}) == 5
            assert [text.score for text in texts] == sorted((text.score for text in texts), reverse=True)
    several = AnyOrderDecoding(steps=2).for_texts(3)
    assert several == AnyOrderDecoding(steps=2, num_return_sequences=3, temperature=1.0)


def test_scores_are_means_of_what_was_written():
    """One token per pass from the left, without a length head: the score is that of left-to-right probabilities."""
    model = any_order(length="end", block=1)
    for text, (generation,) in zip(best(model), generate(model, EXAMPLES), strict=True):
        assert generation.tokens == text.tokens and generation.score == pytest.approx(text.score)
        assert len(generation.passes) == len(text.tokens) and generation.passes[-1] == generation.text
        assert generation.passes[0].endswith("[MASK]") or len(text.tokens) == 1
        assert math.isfinite(text.score) and text.score < 0
