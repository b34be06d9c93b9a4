"""Row lengths that are multiples of 16, as on a GPU: few shapes of attention, the same results, one mask a pass."""

from collections import Counter

import pytest
import torch
import torch.nn.functional as F
from kit import families, toys
from kit.any_order import SIZES
from kit.weights import perturbed
from mmgen_encoders import Bert
from mmgen_generators import AnyOrder, AnyOrderDecoding, Causal, Masked
from mmgen_inputs import Text

from mmgen import Decoding
from mmgen.attention import MULTIPLES
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.model import compose

pytestmark = pytest.mark.slow

CLOSE = 1e-5
EXAMPLES = toys.examples(40)
SEARCHES = {"greedy": Decoding(), "beams": Decoding(num_beams=3, num_return_sequences=2)}
WRITES = {
    "masked": (Masked, SEARCHES),
    "causal": (Causal, SEARCHES),
    "any_order": (AnyOrder, {"confidence": AnyOrderDecoding()}),
}
SEEDS = {"masked": 3, "causal": 3, "any_order": 1}  # of weights whose texts have many lengths


@pytest.fixture
def multiples(monkeypatch):
    """Makes row lengths multiples of 16 on a CPU too."""
    return lambda: monkeypatch.setitem(MULTIPLES, "cpu", 16)


@pytest.fixture
def calls(monkeypatch):
    """The arguments of every call of SDPA: query, key and mask."""
    attend, calls = F.scaled_dot_product_attention, []

    def watched(query, key, value, attn_mask=None, **more):
        calls.append((query, key, attn_mask))
        return attend(query, key, value, attn_mask=attn_mask, **more)

    monkeypatch.setattr(F, "scaled_dot_product_attention", watched)
    return calls


def model_of(name):
    """A model without dropout whose texts have many lengths."""
    torch.manual_seed(SEEDS[name])
    texts = [" ".join(toys.WORDS)] * 3
    model = perturbed(compose(Bert(**SIZES), {"caption": Text()}, WRITES[name][0](max_tokens=20), texts=texts))
    with torch.no_grad():
        model.backbone.model.base_model.embeddings.position_embeddings.weight.mul_(6)
        model.backbone.model.get_output_embeddings().bias[model.backbone.end_id] += 1.5
    return model


def train(model):
    """The losses of batches of eight, and the gradients of their sum."""
    model.zero_grad()
    batches = (map(resolve, EXAMPLES[first : first + 8]) for first in range(0, len(EXAMPLES), 8))
    losses = [model(Collator(model, ["caption"])(list(batch))).mean for batch in batches]
    torch.stack(losses).sum().backward()
    return [loss.detach() for loss in losses], [p.grad for p in model.parameters() if p.grad is not None]


def write(model, options):
    """The tokens of all texts, and their scores."""
    texts = [text for texts in generate(model, EXAMPLES, options) for text in texts]
    return [text.tokens for text in texts], [text.score for text in texts]


@pytest.mark.parametrize("name", WRITES)
def test_losses_and_gradients_are_the_same(name, multiples):
    model = model_of(name)
    losses, gradients = train(model)
    multiples()
    padded_losses, padded_gradients = train(model)
    torch.testing.assert_close(padded_losses, losses, atol=CLOSE, rtol=0)
    torch.testing.assert_close(padded_gradients, gradients, atol=CLOSE, rtol=1e-4)


@pytest.mark.parametrize(("name", "search"), [(name, search) for name, (_, ways) in WRITES.items() for search in ways])
@pytest.mark.parametrize("caches", [True, False], ids=["cache", "no cache"])
def test_texts_are_the_same(name, search, caches, multiples):
    model, options = model_of(name), WRITES[name][1][search]
    model.backbone.caches = caches
    tokens, scores = write(model, options)
    multiples()
    assert write(model, options) == (tokens, pytest.approx(scores, abs=CLOSE))
    assert len(set(map(len, tokens))) > 2


@pytest.mark.parametrize(("name", "before", "after"), [("masked", 50, 15), ("causal", 30, 10), ("any_order", 45, 20)])
def test_attention_has_few_shapes(name, before, after, multiples, calls):
    """In training and in writing."""
    model, shapes = model_of(name), []
    for prepare in (bool, multiples):
        prepare()
        train(model)
        write(model, next(iter(WRITES[name][1].values())))
        shapes.append({(len(query), query.shape[2], key.shape[2]) for query, key, _ in calls})
        calls.clear()
    exact, rounded = shapes
    assert len(exact) > before and len(rounded) < after
    assert all(keys % 16 == 0 for _, _, keys in rounded)


@pytest.mark.parametrize("family", families.QUICK)
@torch.no_grad()
def test_states_and_attention_have_the_size_of_the_rows(family, multiples):
    backbone = families.build(family)
    before, _, targets = families.ragged(backbone)
    tail = families.behind(backbone, before, targets)

    def encode():
        cache = backbone.new_cache()
        first = backbone.encode(before, cache, ("hidden", "attentions"))
        second = backbone.encode(tail, cache, ("attentions",))
        return [first.last, *first.hidden, *first.attentions, second.last, *second.attentions]

    exact = encode()
    multiples()
    torch.testing.assert_close(encode(), exact, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("family", ["bert", "eurobert"])
@torch.no_grad()
def test_all_layers_share_one_additive_mask_of_the_dtype_of_queries(family, half, calls):
    """The efficient kernel refuses a mask of another dtype, and cuDNN misreads it."""
    backbone = toys.model(num_hidden_layers=3).backbone if family == "bert" else families.build(family)
    before, _, _ = families.ragged(backbone)
    calls.clear()  # of a check while the encoder was built
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        backbone.encode(before)
    dtype = torch.bfloat16 if half else torch.float32
    assert Counter((mask.data_ptr(), mask.dtype) for _, _, mask in calls) == {(calls[0][2].data_ptr(), dtype): 3}
