"""fp32 on the GPU: packing, caching and search equal those on the CPU and the paper's procedure, to 1e-5."""

import pytest
import torch
from kit import naive, toys
from mmgen_encoders import FAMILIES, Bert
from mmgen_masked.writing import MaskedStepper

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.generate import generate

CLOSE = 1e-5
SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "groups": Decoding(num_beams=4, num_beam_groups=2, diversity_penalty=1.0, num_return_sequences=2),
    "likeliest": Decoding(do_sample=True, top_k=1),
}
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.model_fields["type"].default)


def batch_of(model, examples, **more):
    return Collator(model, ["caption"], **more)([resolve(example) for example in examples])


def gradients(model, examples, device):
    """(loss, gradients) of a batch, on the CPU."""
    model.to(device).zero_grad()
    loss = model(batch_of(model, examples).to(device)).mean
    loss.backward()
    gradients_by_name = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    return loss.item(), gradients_by_name


@families
@torch.no_grad()
def test_one_pass_gives_the_distributions_of_separate_passes(family, device):
    model, examples = toys.model(family).to(device), toys.examples(3)
    batch = batch_of(model, examples).to(device)
    prefix = model.prefix(batch)
    row = prefix.slots.followed_by(model.behind(prefix, batch.tail))
    states = model.backbone.encode(row).last[:, prefix.slots.positions.shape[1] :]
    packed, layout = model.backbone.logits(states).log_softmax(-1), batch.tail.layout
    for b, example in enumerate(examples):
        with device:  # naive makes its tensors there
            x = naive.text_prefix(model.backbone, resolve(example).inputs["caption"])
            for k, target in enumerate(model.generator.reader.targets(example), 1):
                for t in range(1, len(target) + 1):
                    slot = (layout.role[b] == 3) & (layout.group[b] == k) & (layout.time[b] == t)
                    expected = naive.distribution(model.backbone, x, target[: t - 1])
                    torch.testing.assert_close(packed[b, slot][0], expected, atol=CLOSE, rtol=0)


@families
def test_loss_and_gradients_are_the_processors(family, device):
    model, examples = toys.model(family), toys.examples(8)
    loss, ours = gradients(model, examples, device)
    expected, theirs = gradients(model, examples, torch.device("cpu"))
    assert loss == pytest.approx(expected, abs=CLOSE) and ours.keys() == theirs.keys()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], atol=CLOSE, rtol=1e-4, msg=name)


@families
@torch.no_grad()
def test_a_cache_changes_nothing(family, device):
    model, examples = toys.model(family).to(device), toys.examples(5)
    if not model.backbone.caches:
        pytest.skip("does not cache")
    batch = batch_of(model, examples, objectives=()).to(device)
    written = torch.tensor([model.backbone.encode_text("what color is the dog")[:4]] * 5, device=device)
    texts = []
    for caches in (True, False):
        model.backbone.caches = caches
        writing = MaskedStepper(model, model.prefix(batch))
        texts.append([writing.next_logits(written[:, :t]).log_softmax(-1) for t in range(5)])
    for ours, theirs in zip(*texts, strict=True):
        torch.testing.assert_close(ours, theirs, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_finds_what_it_finds_on_the_processor(search, device):
    model, examples = toys.model(Bert), toys.examples(9)
    expected = generate(model, examples, SEARCHES[search], batch_size=4)
    generations = generate(model.to(device), examples, SEARCHES[search], batch_size=4)
    assert [[text.tokens for text in texts] for texts in generations] == [
        [t.tokens for t in texts] for texts in expected
    ]
    for ours, theirs in zip(generations, expected, strict=True):
        assert [text.score for text in ours] == pytest.approx([text.score for text in theirs], abs=1e-4)


def test_greedy_is_the_papers_procedure(device):
    model, examples = toys.model(Bert).to(device), toys.examples(4)
    for example, (text,) in zip(examples, generate(model, examples), strict=True):
        with device, torch.no_grad():
            x = naive.text_prefix(model.backbone, resolve(example).inputs["caption"])
            tokens, score = naive.greedy(model.backbone, x, model.generator.max_tokens)
        assert (list(text.tokens), text.score) == (tokens, pytest.approx(score, abs=1e-4))
