"""The generator passes mmgen's suite with backbones of both kinds, and cached writing equals plain writing."""

from dataclasses import replace

import pytest
import torch
from kit.weights import perturbed
from mmgen_generators import Causal
from mmgen_generators.causal_writing import CausalStepper

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.tensors import Targets
from mmgen.testing import TEXTS, GeneratorSuite, Tiny, Words


class TestCausal(GeneratorSuite):
    def config(self):
        return Causal(max_tokens=10)


def model():
    torch.manual_seed(0)
    return perturbed(compose(Tiny(width=32), {"caption": Words()}, Causal(max_tokens=8), texts=TEXTS))


EXAMPLES = [
    Example(str(n), {"caption": text}) for n, text in enumerate(("the cat", "a red ball near the water", "tree"))
]


@pytest.mark.parametrize(
    "options", [Decoding(), Decoding(num_beams=3, num_return_sequences=2)], ids=["greedy", "beams"]
)
def test_cached_keys_and_values_change_nothing(options):
    cached = model()
    plain = model()
    plain.backbone.caches = False
    for texts, plain_texts in zip(generate(cached, EXAMPLES, options), generate(plain, EXAMPLES, options), strict=True):
        assert [text.tokens for text in texts] == [text.tokens for text in plain_texts]
        assert [text.score for text in texts] == pytest.approx([text.score for text in plain_texts], abs=1e-5)


def test_the_loss_of_a_generated_text_is_minus_its_score():
    """Training and generation use one distribution: a text's score is minus its mean loss."""
    tiny = model()
    for example, (text,) in zip(EXAMPLES, generate(tiny, EXAMPLES), strict=True):
        batch = Collator(tiny, ("caption",), objectives=())([example])
        tail = tiny.generator.reader.lay_out([[list(text.tokens)]])
        loss = tiny(replace(batch, targets={"generator": Targets({"loss": len(text.tokens)}, tail=tail)}))
        assert -loss.mean.item() == pytest.approx(text.score, abs=1e-4)


def stepper(tiny, caches):
    tiny.backbone.caches = caches
    batch = Collator(tiny, ("caption",), objectives=())(EXAMPLES[:2])
    return CausalStepper(tiny, tiny.prefix(batch), tiny.backbone.end_id)


@torch.no_grad()
def test_rows_that_go_on_from_others_need_no_cache():
    """Rows of an input, with and without a cache, give the logits of complete rows."""
    tiny = model()
    cached, plain = stepper(tiny, True), stepper(tiny, False)
    written, draw = torch.empty(4, 0, dtype=torch.long), torch.Generator().manual_seed(0)
    for rows in ([0, 1, 2, 3], [1, 1, 3, 2], [0, 0, 2, 2]):
        logits = cached.next_logits(written)
        assert logits.shape[0] == 4
        torch.testing.assert_close(logits, plain.next_logits(written), atol=1e-5, rtol=0)
        for used in (cached, plain):
            used.reorder_cache(torch.tensor(rows))
        words = torch.randint(5, len(tiny.backbone.tokenizer), (4, 1), generator=draw)
        written = torch.cat([written[rows], words], 1)
