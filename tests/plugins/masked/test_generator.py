"""The masked generator, compared with the paper's procedure written out (tests/kit/naive.py): the same results."""

import copy
import pickle

import pytest
import torch
from kit import naive, toys
from mmgen_encoders import Albert, Bert, Roberta
from mmgen_masked.writing import MaskedStepper

from mmgen import Decoding, UnavailableError
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.generate import generate

CLOSE = 1e-5


def caption(example):
    return resolve(example).inputs["caption"]


@pytest.fixture(scope="module", params=[Bert, Roberta], ids=["bert", "roberta"])
def model(request):
    return toys.model(request.param)


def batch_of(model, examples, **more):
    return Collator(model, ["caption"], **more)([resolve(example) for example in examples])


@pytest.mark.parametrize("family", toys.families(pytest.mark.slow))
@torch.no_grad()
def test_one_pass_gives_the_distributions_of_separate_passes(family):
    """Fact 1 and 2: ragged prefixes, several questions each, padding; every distribution equal to 1e-5."""
    model, examples = toys.model(family), toys.examples()
    batch = batch_of(model, examples)
    prefix = model.prefix(batch)
    row = prefix.slots.followed_by(model.behind(prefix, batch.tail))
    states = model.backbone.encode(row).last[:, prefix.slots.positions.shape[1] :]
    packed = model.backbone.logits(states).log_softmax(-1)
    for b, example in enumerate(examples):
        x = naive.text_prefix(model.backbone, caption(example))
        for k, target in enumerate(model.generator.reader.targets(example), 1):
            for t, token in enumerate(target, 1):
                layout = batch.tail.layout
                slot = ((layout.role[b] == 3) & (layout.group[b] == k) & (layout.time[b] == t)).nonzero().item()
                assert batch.tail.labels[b, slot] == token
                expected = naive.distribution(model.backbone, x, target[: t - 1])
                torch.testing.assert_close(packed[b, slot], expected, atol=CLOSE, rtol=0)


@torch.no_grad()
def test_the_loss_is_the_naive_sum_over_all_predicted_tokens(model):
    examples = toys.examples()
    loss = model(batch_of(model, examples))
    total, count = 0.0, 0
    for example in examples:
        x = naive.text_prefix(model.backbone, caption(example))
        for target in model.generator.reader.targets(example):
            total -= sum(
                float(naive.distribution(model.backbone, x, target[:t])[token]) for t, token in enumerate(target)
            )
            count += len(target)
    assert loss.counts == {"generator.loss": count}
    assert float(loss.sums["generator.loss"]) == pytest.approx(total, rel=1e-5)


def test_gradients_of_a_packed_batch_are_those_of_single_questions(model):
    """K questions that share X have the gradients of K separate pairs."""
    from dataclasses import replace

    examples = toys.examples(3)
    pairs = [replace(example, targets=(target,)) for example in examples for target in example.targets]
    gradients = []
    for group in (examples, pairs):
        model.zero_grad()
        model(batch_of(model, group)).sums["generator.loss"].backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", [Bert, Roberta, Albert], ids=["bert", "roberta", "albert, without a cache"])
def test_cached_greedy_is_naive_greedy(family):
    """Fact 3; an encoder without a cache encodes everything again, with the same result."""
    model, examples = toys.model(family), toys.examples(8)
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
        written = torch.cat(
            [
                written,
                torch.randint(
                    5, len(model.backbone.tokenizer), (len(examples), 1), generator=torch.Generator().manual_seed(step)
                ),
            ],
            1,
        )


@pytest.mark.parametrize("family", toys.families(pytest.mark.slow))
def test_the_last_layer_for_predicted_slots_only_is_the_whole_layer(family):
    """States and every gradient equal those of the encoder's full pass; ragged rows, and rows without predictions."""
    model = toys.model(family)
    batch = batch_of(model, toys.examples())
    rows, labels = model.rows(batch, batch.tail)
    predicted = labels != -100
    predicted[1] = False
    results = []
    for states in (model.backbone.encode(rows).last[predicted], model.backbone.states_at(rows, predicted)):
        model.zero_grad()
        (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward(retain_graph=True)
        results.append((states, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}))
    (full, gradients), (narrow, narrow_gradients) = results
    torch.testing.assert_close(narrow, full, atol=CLOSE, rtol=0)
    assert gradients.keys() == narrow_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(narrow_gradients[name], gradient, atol=1e-4, rtol=1e-4, msg=name)


@pytest.mark.slow
def test_calls_may_be_in_several_threads_and_models_copied(model):
    """The predicted slots of the last layer are an argument of each call, not state."""
    from concurrent.futures import ThreadPoolExecutor

    batches = [toys.examples(count, seed=count) for count in (2, 3, 5, 7)]
    expected = [generate(model, batch) for batch in batches]
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(generate, model, batch) for batch in batches * 5]
    assert [future.result() for future in futures] == expected * 5
    for same in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert generate(same, batches[0]) == expected[0]


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradient_checkpointing_gives_the_same_gradients(reentrant):
    model, gradients = toys.model(dropout=0.0).train(), []
    for checkpointing in (False, True):
        if checkpointing:
            model.backbone.model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        model.zero_grad()
        model(batch_of(model, toys.examples())).sums["generator.loss"].backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-4, rtol=1e-4, msg=name)


@torch.no_grad()
def test_another_last_layer_is_read_whole(model):
    """An unknown last layer is run in full; without predicted slots the result is empty."""
    changed = toys.model()
    layers = changed.backbone.model.base_model.encoder.layer
    layers[-1], layers[0] = layers[0], layers[-1]
    batch = batch_of(changed, toys.examples())
    rows, labels = changed.rows(batch, batch.tail)
    torch.testing.assert_close(
        changed.backbone.states_at(rows, labels != -100),
        changed.backbone.encode(rows).last[labels != -100],
        atol=CLOSE,
        rtol=0,
    )
    del layers[-1]
    torch.testing.assert_close(
        changed.backbone.states_at(rows, labels != -100),
        changed.backbone.encode(rows).last[labels != -100],
        atol=CLOSE,
        rtol=0,
    )
    assert changed.backbone.states_at(rows, torch.zeros_like(labels, dtype=torch.bool)).shape == (0, 32)


def test_the_last_layer_works_for_predicted_slots_only(model):
    """Only predicted slots go through the last feed-forward part."""
    batch, worked = batch_of(model, toys.examples()), []
    hook = model.backbone.model.base_model.encoder.layer[-1].intermediate.register_forward_hook(
        lambda *call: worked.append(call[1][0].shape[1])
    )
    model(batch)
    hook.remove()
    predicted = (batch.tail.labels != -100).sum(1)
    assert worked == [predicted.max()] and predicted.max() < batch.tail.labels.shape[1]


ENDING = {
    "greedy": Decoding(),
    "samples": Decoding(do_sample=True, num_return_sequences=3),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "beams that stop early": Decoding(num_beams=3, early_stopping=True),
    "diverse beams": Decoding(num_beams=4, num_beam_groups=2, diversity_penalty=0.7, num_return_sequences=2),
}


@pytest.mark.parametrize("caches", [True, False], ids=["cache", "no cache"])
@pytest.mark.parametrize("options", ENDING.values(), ids=ENDING)
def test_inputs_whose_texts_are_decided_leave_and_change_nothing(options, caches, monkeypatch):
    """Texts of all lengths: results do not change when finished inputs leave, and fewer rows are computed."""
    model, examples = toys.model(max_tokens=25, seed=1), toys.examples(12)
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
        results.append(
            (
                [
                    [(t.tokens, pytest.approx(t.score, abs=1e-5)) for t in texts]
                    for texts in generate(model, examples, options)
                ],
                sum(rows),
            )
        )
        rows.clear()
    (texts, fewer), (same, all_of_them) = results
    assert texts == same
    assert len({len(tokens) for row in texts for tokens, _ in row}) > 3, "texts of many lengths"
    assert fewer < 0.9 * all_of_them


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.skipif(
    tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 13),
    reason="torch 2.6 traces hooks with other arguments than they get",
)
def test_a_compiled_encoder_has_the_same_gradients():
    """torch.compile's own tracing, without its code generator, which takes a minute; two shapes of batches."""
    plain, compiled = toys.model(num_hidden_layers=1), toys.model(num_hidden_layers=1)
    compiled.backbone.model.base_model.compile(backend="aot_eager", dynamic=True)
    for examples in (toys.examples(3), toys.examples(5)):
        for model in (plain, compiled):
            model.zero_grad()
            model(batch_of(model, examples)).sums["generator.loss"].backward()
        for (name, parameter), same in zip(plain.named_parameters(), compiled.parameters(), strict=True):
            torch.testing.assert_close(same.grad, parameter.grad, atol=1e-4, rtol=1e-4, msg=name)


@torch.no_grad()
def test_bf16_is_near():
    """Stated tolerance: 0.5 % of the loss; log-probabilities 0.02 apart in the mean and 0.2 at most, where they spread
    by 1. Decoding with a cache, three rows an input that are exchanged at every step."""
    model, examples = toys.model(), toys.examples(8)
    batch, prefix_batch = batch_of(model, examples), batch_of(model, examples, objectives=())
    losses, steps = [], []
    for low in (False, True):
        draw = torch.Generator().manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            losses.append(model(batch).mean)
            writing, written, log_probabilities = (
                MaskedStepper(model, model.prefix(prefix_batch)),
                torch.empty(24, 0, dtype=torch.long),
                [],
            )
            for _ in range(6):
                log_probabilities.append(writing.next_logits(written).log_softmax(-1))
                rows = torch.arange(8).repeat_interleave(3) * 3 + torch.randint(0, 3, (24,), generator=draw)
                written = torch.cat([written[rows], torch.randint(5, 30, (24, 1), generator=draw)], 1)
                writing.reorder_cache(rows)
            steps.append(torch.stack(log_probabilities))
    assert losses[1] != losses[0] and losses[1] == pytest.approx(float(losses[0]), rel=5e-3)
    apart = (steps[1] - steps[0]).abs()
    assert apart.mean() < 0.02 and apart.max() < 0.2 and steps[0].std() > 0.9


OPTIONS = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=4, num_return_sequences=3),
    "length penalty": Decoding(num_beams=3, length_penalty=0.2),
    "no repeated bigram": Decoding(num_beams=3, no_repeat_ngram_size=2),
    "diverse beams": Decoding(num_beams=6, num_beam_groups=3, diversity_penalty=1.5, num_return_sequences=4),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_batch_gives_what_single_examples_give(model, options):
    examples = toys.examples(6)
    together = generate(model, examples, options)
    alone = [generate(model, [example], options)[0] for example in examples]
    assert [[t.tokens for t in texts] for texts in together] == [[t.tokens for t in texts] for texts in alone]
    for texts in together:
        assert len(texts) == options.num_return_sequences


def test_beams_are_searched_as_by_a_naive_search(model):
    """Beam search over the naive distributions, two beams, small enough to write out."""
    example = toys.examples(1)[0]
    x, end, limit = naive.text_prefix(model.backbone, caption(example)), model.backbone.end_id, 4
    model.generator.reader.max_tokens, before = limit, model.generator.max_tokens
    try:
        (texts,) = generate(model, [example], Decoding(num_beams=2, num_return_sequences=2, length_penalty=1.0))
    finally:
        model.generator.reader.max_tokens = before
    live, ended = [(0.0, [])], []
    for _ in range(limit):
        grown = [
            (total + float(logp), [*tokens, token])
            for total, tokens in live
            for token, logp in enumerate(naive.distribution(model.backbone, x, tokens).tolist())
        ]
        grown.sort(reverse=True)
        ended += [(total / len(tokens), tokens) for total, tokens in grown[:2] if tokens[-1] == end]
        live = [(total, tokens) for total, tokens in grown[:4] if tokens[-1] != end][:2]
    ended += [(total / limit, tokens) for total, tokens in live]
    ended.sort(reverse=True)
    assert [list(text.tokens) for text in texts] == [tokens for _, tokens in ended[:2]]
    assert texts[0].score == pytest.approx(ended[0][0], abs=1e-4)


def test_sampling_follows_the_distribution(model):
    """First tokens of many samples against the naive distribution, with temperature and top-k applied to it."""
    example = toys.examples(1)[0]
    torch.manual_seed(0)
    samples = [
        generate(model, [example], Decoding(do_sample=True, top_k=3, temperature=2.0, num_return_sequences=100))[0]
        for _ in range(4)
    ]
    firsts = torch.tensor([text.tokens[0] for texts in samples for text in texts])
    logp = naive.distribution(model.backbone, naive.text_prefix(model.backbone, caption(example)), [])
    best = logp.topk(3).indices
    expected = (logp[best] / 2.0).softmax(-1)
    assert set(firsts.tolist()) <= set(best.tolist())
    for token, probability in zip(best.tolist(), expected.tolist(), strict=True):
        assert (firsts == token).float().mean().item() == pytest.approx(probability, abs=0.1)


def test_sampling_repeats_from_a_seed(model):
    options = Decoding(do_sample=True, top_p=0.9)
    texts = []
    for _ in range(2):
        torch.manual_seed(3)
        texts.append(generate(model, toys.examples(3), options))
    assert texts[0] == texts[1]


def test_no_ngram_comes_twice(model):
    for (text,) in generate(model, toys.examples(6), Decoding(no_repeat_ngram_size=2)):
        pairs = list(zip(text.tokens, text.tokens[1:], strict=False))
        assert len(pairs) == len(set(pairs))


def test_no_text_ends_before_min_new_tokens(model):
    """Texts that would end sooner continue, and their scores ignore that the end was forbidden."""
    (example,) = toys.examples(1)
    drawn = {"do_sample": True, "temperature": 5.0, "num_return_sequences": 200}
    torch.manual_seed(0)
    (free,), (texts,) = (generate(model, [example], Decoding(min_new_tokens=n, **drawn)) for n in (0, 5))
    end, x = model.backbone.end_id, naive.text_prefix(model.backbone, caption(example))
    assert any(end in text.tokens[:5] for text in free) and not any(end in text.tokens[:5] for text in texts)
    for text in texts[:2]:
        tokens = list(text.tokens)
        logp = [float(naive.distribution(model.backbone, x, tokens[:t]).detach()[y]) for t, y in enumerate(tokens)]
        assert text.score == pytest.approx(sum(logp) / len(logp), abs=1e-4)
    with pytest.raises(UnavailableError, match="min_new_tokens = 9: a text has at most 9 tokens, including its end"):
        generate(model, [example], Decoding(min_new_tokens=9))


def test_diverse_groups_of_one_beam_without_penalty_are_all_greedy(model):
    examples = toys.examples(4)
    greedy = [texts[0].tokens for texts in generate(model, examples)]
    diverse = generate(model, examples, Decoding(num_beams=3, num_beam_groups=3, num_return_sequences=3))
    assert [{t.tokens for t in texts} for texts in diverse] == [{tokens} for tokens in greedy]


def test_the_first_diverse_group_is_not_penalised_and_others_differ(model):
    examples = toys.examples(4)
    greedy = [texts[0].tokens for texts in generate(model, examples)]
    diverse = generate(
        model, examples, Decoding(num_beams=3, num_beam_groups=3, diversity_penalty=50.0, num_return_sequences=3)
    )
    for tokens, texts in zip(greedy, diverse, strict=True):
        assert tokens in [t.tokens for t in texts]
        assert len({t.tokens[0] for t in texts}) == 3


def test_the_end_token_ends_a_question_and_is_not_in_its_text(model):
    texts = [
        text
        for texts in generate(model, toys.examples(20), Decoding(do_sample=True, num_return_sequences=5))
        for text in texts
    ]
    ended = [text for text in texts if model.backbone.end_id in text.tokens]
    assert ended, "with random weights some samples end early"
    for text in texts:
        assert model.backbone.end_id not in text.tokens[:-1]
        assert len(text.tokens) <= 9
        assert not any(special in text.text for special in ("[SEP]", "[PAD]", "</s>"))


def test_embeddings_padded_beyond_the_words_are_never_written():
    model = toys.model()
    words = len(model.backbone.tokenizer)
    model.backbone.model.resize_token_embeddings(words + 7)
    for options in OPTIONS.values():
        for texts in generate(model, toys.examples(3), options):
            assert all(max(text.tokens) < words for text in texts)


def test_a_row_longer_than_the_encoders_positions_is_refused():
    from mmgen.errors import DataError
    from mmgen.tensors import Example

    model = toys.model()
    model.backbone.max_positions = 12
    with pytest.raises(
        DataError, match="an example needs 5 positions, but the encoder has 12, 9 of them reserved for the text"
    ):
        generate(model, [Example("x", {"caption": "red ball dog near"})])


def test_a_long_target_is_cut_and_still_ends(model):
    from mmgen.tensors import Example

    long = Example("long", {"caption": "a"}, (" ".join(["ball"] * 40), "ball"))
    collate = Collator(model, ["caption"])
    first, second = collate.targets["generator"].targets(long)
    assert len(first) == 9 and first[-1] == model.backbone.end_id
    assert collate.targets["generator"].cut([long]) == 1


@torch.no_grad()
def test_the_vocabulary_head_in_chunks_is_the_head_at_once(model, monkeypatch):
    batch = batch_of(model, toys.examples())
    expected = model(batch)
    monkeypatch.setattr("mmgen_masked.generator.HEAD_SLOTS", 7)
    torch.testing.assert_close(model(batch).sums, expected.sums, atol=1e-3, rtol=1e-5)


@pytest.mark.slow
def test_training_steps_lower_the_loss(model):
    trained = toys.model(seed=1).train()
    batch = batch_of(trained, toys.examples(2))
    optimizer = torch.optim.Adam(trained.parameters(), 1e-2)
    losses = []
    for _ in range(30):
        loss = trained(batch).mean
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss))
    assert losses[-1] < losses[0] / 3


@torch.no_grad()
def test_long_writing_with_rows_repeated_and_reordered_is_exact():
    """Thirty steps of three rows that are exchanged at every step; equal to re-encoding."""
    model, example = toys.model(max_tokens=40), toys.examples(1)[0]
    writing = MaskedStepper(model, model.prefix(batch_of(model, [example], objectives=())))
    x, written = naive.text_prefix(model.backbone, caption(example)), torch.empty(3, 0, dtype=torch.long)
    draw = torch.Generator().manual_seed(0)
    for step in range(30):
        logp = writing.next_logits(written).log_softmax(-1)
        if step % 5 == 0:
            for row in range(3):
                torch.testing.assert_close(
                    logp[row], naive.distribution(model.backbone, x, written[row].tolist()), atol=CLOSE, rtol=0
                )
        rows = torch.randint(0, 3, (3,), generator=draw)
        written = torch.cat([written[rows], torch.randint(5, 30, (3, 1), generator=draw)], 1)
        writing.reorder_cache(rows)


def test_a_limit_that_leaves_no_room_for_inputs_is_refused():
    from mmgen.errors import DataError
    from mmgen.model import Model

    model = toys.model(Bert)
    model.generator.reader.max_tokens = model.backbone.max_positions
    with pytest.raises(
        DataError, match="^generator.max_tokens is 512, but the encoder has only 512 positions for inputs"
    ):
        Model(model.backbone, model.embedders, model.generator)
