"""Examples, models and runs for probes."""

import numpy as np
import torch
from mmgen_encoders import Bert
from mmgen_inputs import Regions, Text

from mmgen.evaluation.answers import generate
from mmgen.examples import ResolvedExample
from mmgen.parts import ProbeInput, Record, TrainedStep
from mmgen.testing import Greedy, ProbeSuite
from mmgen.testing.toy import TEXTS

BOXES = np.array([(0, 0, 0.5, 0.5), (0.5, 0.5, 1, 1), (0, 0, 1, 1)], np.float32)


FACTS = {
    "captions": ["a red cat near the water", "the cat"],
    "phrases": [[[0, 9, [0]], [15, 24, [1]]], [[0, 7, [0]]]],
    "things": [{"box": [0, 0, 0.5, 0.5]}, {"box": [0.5, 0.5, 1, 1]}],
}


def example(number: int) -> ResolvedExample:
    """A picture of three regions with random features, and a caption whose phrases are known."""
    features = np.random.default_rng(number).normal(size=(3, 6)).astype(np.float32)
    record = Record(
        f"picture-{number}", features, BOXES, ("a cat", "water", "all"), np.array([0.2, 0.9, 0.5], np.float32)
    )
    return ResolvedExample(f"e{number}", {"image": record, "caption": FACTS["captions"][0]}, (TEXTS[number],), FACTS)


EXAMPLES = [example(number) for number in range(4)]


class Pictured(ProbeSuite):
    """The probed model: BERT with three regions and a caption."""

    def backbone_config(self):
        return Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def inputs(self):
        return {"image": Regions(fields=("image",), width=6, fingerprint={}), "caption": Text(fields=("caption",))}

    def generator_config(self):
        return Greedy(max_tokens=4)

    def examples(self):
        return EXAMPLES


def model(seed: int = 0):
    bert = Pictured().model(seed)
    with torch.no_grad():
        for parameter in bert.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed)) * 0.2)
    return bert


def subject(*inputs: str, models=None, examples=EXAMPLES, pictures=None) -> ProbeInput:
    """A step for every list of inputs, such as "image caption"."""
    step_models = models or [model(place) for place in range(len(inputs))]
    steps = [
        TrainedStep(f"s{place}", lambda step_model=step_model: step_model, tuple(names.split()), {}, place, generate)
        for place, (names, step_model) in enumerate(zip(inputs, step_models, strict=True))
    ]
    return ProbeInput(steps, examples, lambda: model(99), pictures or {})
