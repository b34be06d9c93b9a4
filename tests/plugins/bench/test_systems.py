"""Systems: all compute the same gradients and texts."""

import pytest
import torch
from mmgen_bench.flops import BERT2BERT, CAUSAL, NAIVE, OURS, Shape
from mmgen_bench.timing import SEARCHES, Settings, prepare_systems
from mmgen_bench.workload import batch_of, draw_examples

pytestmark = pytest.mark.slow


TINY = Shape(layers=1, width=16, vocabulary=1500, regions=36, features=8)


@pytest.fixture(scope="module")
def systems():
    with prepare_systems(Settings(TINY, batch=2, tokens=6, dropout=0.0)) as built_systems:
        yield built_systems


def test_every_row_has_the_stated_length(systems):
    model = systems[OURS].module
    batch_examples = draw_examples(TINY, model, 2, 3, 6)
    batch = batch_of(model, batch_examples)
    assert model.prefix(batch).slots.layout.real.sum(1).tolist() == [54, 54]
    assert batch.tail.layout.real.sum(1).tolist() == [3 * 11, 3 * 11]


def test_naive_has_the_gradients_of_ours(systems):
    """One question per image: the same loss, so the same gradients."""
    model = systems[OURS].module
    batch_examples, gradients = draw_examples(TINY, model, 2, 1, 6), []
    for name in (OURS, NAIVE):
        model.zero_grad()
        systems[name].prepare_training(batch_examples)()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(*gradients, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
@torch.inference_mode()
def test_all_write_the_same_number_of_tokens(systems, search):
    for name, system in systems.items():
        system.module.eval()
        texts = system.prepare_generation(draw_examples(TINY, systems[OURS].module, 2, 1, 6), SEARCHES[search], 6)()
        assert texts == 2 * {"greedy": 1, "4 beams": 4, "5 samples": 5}[search], name


@torch.inference_mode()
def test_transformers_read_the_prefix_as_counted(systems):
    """BERT2BERT reads the prefix once per image, causal BERT once per beam."""
    batch_examples, seen = draw_examples(TINY, systems[OURS].module, 2, 1, 6), []

    def note(module, inputs, named):
        seen.append(tuple(named["inputs_embeds"].shape[:2]) if named.get("inputs_embeds") is not None else None)

    encoders = {BERT2BERT: systems[BERT2BERT].network.encoder, CAUSAL: systems[CAUSAL].network.bert}
    for name, rows in ((BERT2BERT, 2), (CAUSAL, 8)):
        seen.clear()
        handle = encoders[name].register_forward_pre_hook(note, with_kwargs=True)
        systems[name].prepare_generation(batch_examples, SEARCHES["4 beams"], 6)()
        handle.remove()
        assert [shape for shape in seen if shape and shape[1] > 1] == [(rows, 54)]
