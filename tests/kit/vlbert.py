"""Small models of VL-BERT, with regions."""

import numpy as np
import torch
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_vlbert import VlBert, VlBertRegions

from kit.weights import perturbed
from mmgen.data.collate import Collator
from mmgen.examples import Example
from mmgen.features.classes import Classes
from mmgen.model import compose
from mmgen.parts import Record

D = 20


WORDS = "what color is the ball . a red cat and two dogs on grass"


def record(name, count, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 0.5, (count, 2))
    boxes = np.concatenate([first, first + 0.4], 1).astype(np.float32)
    features = rng.standard_normal((count, D)).astype(np.float32)
    return Record(name, features, boxes, classes=Classes.surest(("cat", "dog"), rng.dirichlet((1, 1), count)))


def regions(**settings):
    return VlBertRegions(width=D, fingerprint={"extractor": "toy"}, classes=("cat", "dog"), **settings)


def build_model(perturb=True, inputs=None, **settings):
    torch.manual_seed(0)
    model = compose(
        VlBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0),
        inputs or {"caption": Text(), "image": regions(dropout=0.0, **settings)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
    )
    return perturbed(model) if perturb else model.eval()


def examples():
    """Examples with 2, 3 and 5 regions."""
    captions = ("a red cat", "the ball", "what color is the ball")
    return [
        Example(f"e{n}", {"caption": caption, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, caption in enumerate(captions)
    ]


def slots_of(model, some):
    return model.prefix(Collator(model, model.inputs, ())(some)).slots
