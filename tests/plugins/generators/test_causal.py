"""The generator passes mmgen's test suite with backbones of both kinds, and cached decoding equals plain decoding."""

from dataclasses import replace

import pytest
import torch
from mmgen_generators import Causal
from torch import nn

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.tensors import Encoded, Targets
from mmgen.testing import TEXTS, GeneratorSuite, Tiny, TinyBackbone, Words


class TestCausal(GeneratorSuite):
    def config(self):
        return Causal(max_tokens=10)


class RecurrentBackbone(TinyBackbone):
    """Reads from left to right, ignores the mask, and skips padding."""

    masks, caches = "causal", False

    def __init__(self, config, words):
        super().__init__(config, words)
        self.cell = nn.GRUCell(config.embedding, config.width)

    def encode(self, slots, cache=None, output=()):
        state, states = slots.states.new_zeros(len(slots.states), self.hidden_size), []
        for number in range(slots.states.shape[1]):
            state = torch.where(slots.layout.real[:, number, None], self.cell(slots.states[:, number], state), state)
            states.append(state)
        return Encoded(torch.stack(states, 1))


class Recurrent(Tiny):
    """A recurrent network."""

    def build(self, texts=None, folder=None):
        return RecurrentBackbone(self, super().build(texts, folder).tokenizer)


@pytest.mark.slow
class TestBehindABackboneThatReadsFromLeftToRight(GeneratorSuite):
    def config(self):
        return Causal(max_tokens=10)

    def backbone_config(self):
        return Recurrent(width=32)


def model(seed: int = 0):
    torch.manual_seed(seed)
    tiny = compose(Tiny(width=32), {"caption": Words()}, Causal(max_tokens=8), texts=TEXTS)
    with torch.no_grad():
        for parameter in tiny.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return tiny.eval()


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
