"""On a GPU fp32 equals the processor and the paper's procedure, and bf16 errs no more than that procedure in bf16."""

import copy

import pytest
import torch
from kit import families, naive, seeing, toys
from mmgen_encoders import Bert

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.tensors import MASK, apply

pytestmark = pytest.mark.gpu

CLOSE = 1e-5
SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "likeliest": Decoding(do_sample=True, top_k=1),
}


def batch_of(model, examples, **options):
    return Collator(model, ["caption"], **options)([resolve(example) for example in examples]).to(model.device)


def packed_log_probabilities(model, examples):
    """Log-probabilities (n, V) at all predicted slots of a single pass, in the order of the questions."""
    batch = batch_of(model, examples)
    rows, labels = model.rows(batch, batch.tail)
    states = model.backbone.states_at(rows, labels != -100)
    return model.backbone.logits(states).log_softmax(-1)


def naive_log_probabilities(model, examples):
    """The same by the paper's procedure, with a pass for each of them."""
    rows = []
    with model.device:  # naive makes its tensors there
        for example in examples:
            x = naive.text_prefix(model.backbone, resolve(example).inputs["caption"])
            for target in model.generator.reader.targets(example):
                rows += [naive.distribution(model.backbone, x, target[:t]) for t in range(len(target))]
    return torch.stack(rows)


@torch.no_grad()
def test_bf16_is_off_by_no_more_than_the_procedure_in_bf16(device):
    model, examples = toys.model(Bert, hidden_size=64).to(device), toys.examples(8)
    expected = naive_log_probabilities(copy.deepcopy(model).double(), examples)
    with torch.autocast(device.type, torch.bfloat16):
        packed, rounded = packed_log_probabilities(model, examples), naive_log_probabilities(model, examples)
    errors, noise = (packed - expected).abs(), (rounded - expected).abs()
    assert noise.mean() > 1e-3  # it is bf16
    assert errors.mean() <= 1.2 * noise.mean() and errors.max() <= 2 * noise.max()


def gradients(model, examples):
    """(loss, gradients on the CPU) of a batch."""
    model.zero_grad()
    loss = model(batch_of(model, examples)).mean
    loss.backward()
    return loss.item(), {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("family", toys.FAMILIES, ids=lambda family: family.__name__)
def test_loss_and_gradients_are_the_processors(family, device):
    model, examples = toys.model(family), toys.examples(8)
    expected_loss, expected = gradients(model, examples)
    loss, results = gradients(model.to(device), examples)
    assert loss == pytest.approx(expected_loss, abs=CLOSE) and results.keys() == expected.keys()
    for name in results:
        torch.testing.assert_close(results[name], expected[name], atol=CLOSE, rtol=1e-4, msg=name)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_finds_what_it_finds_on_the_processor(search, device):
    model, examples = toys.model(Bert), toys.examples(9)
    expected = generate(model, examples, SEARCHES[search], batch_size=4)
    results = generate(model.to(device), examples, SEARCHES[search], batch_size=4)
    assert [[text.tokens for text in texts] for texts in results] == [[t.tokens for t in texts] for texts in expected]
    for texts, expected_texts in zip(results, expected, strict=True):
        assert [text.score for text in texts] == pytest.approx([text.score for text in expected_texts], abs=1e-4)


@pytest.mark.parametrize("family", families.REACHED)
@torch.no_grad()
def test_a_family_of_transformers_is_the_papers_procedure(family, device):
    """Packed, and behind cached inputs; the procedure runs on the processor."""
    backbone = families.build(family)
    before, alone, targets = families.ragged(backbone)
    expected = torch.stack(families.naive_log_probabilities(backbone, alone, targets))
    tail = families.behind(backbone, before, targets)
    where, first = tail.layout.role == MASK, before.positions.shape[1]
    backbone.to(device)
    before, tail = (apply(slots, lambda tensor: tensor.to(device)) for slots in (before, tail))
    packed = backbone.encode(before.followed_by(tail)).last[:, first:]
    cache = backbone.new_cache()
    backbone.encode(before, cache)
    for states in (packed, backbone.encode(tail, cache).last):
        log_probabilities = backbone.logits(states).log_softmax(-1).cpu()[where]
        torch.testing.assert_close(log_probabilities, expected, atol=2e-5, rtol=1e-5)


@torch.no_grad()
def test_an_encoder_that_sees_has_the_loss_and_the_texts_of_the_processor(device):
    model, examples = seeing.model(), seeing.examples()
    batch = Collator(model, ["image", "caption"])(examples)
    moved = copy.deepcopy(model).to(device)
    torch.testing.assert_close(moved(batch.to(device)).mean.cpu(), model(batch).mean, atol=2e-5, rtol=1e-5)
    expected, texts = (
        [[text.tokens for text in row] for row in generate(network, examples, Decoding())] for network in (model, moved)
    )
    assert texts == expected
