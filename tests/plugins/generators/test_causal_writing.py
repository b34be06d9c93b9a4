"""Stepwise decoding: rows of an input, with and without a cache, give the logits of complete rows."""

import pytest
import torch
from mmgen_generators import Causal
from mmgen_generators.causal_writing import CausalStepper

from mmgen.data.collate import Collator
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.testing import TEXTS, Tiny, Words

EXAMPLES = [Example(str(n), {"caption": text}) for n, text in enumerate(("the cat", "a red ball near the water"))]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return compose(Tiny(width=32), {"caption": Words()}, Causal(max_tokens=8), texts=TEXTS).eval()


def stepper(model, caches):
    model.backbone.caches = caches
    batch = Collator(model, ("caption",), objectives=())(EXAMPLES)
    return CausalStepper(model, model.prefix(batch), model.backbone.end_id)


@torch.no_grad()
def test_rows_that_go_on_from_others_need_no_cache(model):
    cached, plain = stepper(model, True), stepper(model, False)
    written, draw = torch.empty(4, 0, dtype=torch.long), torch.Generator().manual_seed(0)
    for rows in ([0, 1, 2, 3], [1, 1, 3, 2], [0, 0, 2, 2]):
        logits = cached.next_logits(written)
        assert logits.shape[0] == 4
        torch.testing.assert_close(logits, plain.next_logits(written), atol=1e-5, rtol=0)
        for used in (cached, plain):
            used.reorder_cache(torch.tensor(rows))
        words = torch.randint(5, len(model.backbone.tokenizer), (4, 1), generator=draw)
        written = torch.cat([written[rows], words], 1)
