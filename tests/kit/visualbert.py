"""Small models of VisualBERT, with regions and tensors of the original code."""

import numpy as np
import torch
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_visualbert import VisualBert, VisualBertRegions, published_weights
from mmgen_visualbert.backbone import VisualBertBackbone
from transformers import (
    BertConfig,
    BertForMaskedLM,
)

from kit.weights import perturbed
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.parts import Record

D = 20


WORDS = "what color is the ball . a red cat and two dogs on grass"


def record(name, regions, seed=0):
    rng = np.random.default_rng(seed)
    return Record(name, rng.standard_normal((regions, D)).astype(np.float32), rng.uniform(0, 1, (regions, 4)))


def regions(**settings):
    return VisualBertRegions(width=D, fingerprint={"extractor": "toy"}, **settings)


class Ids:
    """A tokenizer that is never called: the oracles' inputs are token ids."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0
    is_fast = True


def _split(tensors):
    parts = {}
    for name, tensor in tensors.items():
        first, _, rest = name.partition(".")
        parts.setdefault(first.rstrip("_") if first != "in" else "inputs", {})[rest] = tensor
    return parts


def backbone_of(sizes, weights, **settings):
    """The backbone on weights of the original code."""
    ours = BertConfig(**{name: value for name, value in sizes.items() if name in BertConfig().to_dict()})
    torch.manual_seed(0)
    backbone = VisualBertBackbone(VisualBert(**settings), BertForMaskedLM(ours), Ids()).eval()
    backbone.add_pooler()
    bert = dict(published_weights.as_bert(weights))
    pooler = {name: bert.pop(f"bert.pooler.dense.{name}") for name in ("weight", "bias")}
    missing, unexpected = backbone.model.load_state_dict(bert, strict=False)
    assert not unexpected and set(missing) <= {"cls.predictions.decoder.bias"}
    backbone.pooler.dense.load_state_dict(pooler)
    if backbone.fusion is not None:
        backbone.fusion.load_state_dict(published_weights.fusion(weights))
    return backbone


INPUTS = {"caption": Text(), "second": Text(token_type=1)}


def build_model(fuse="early", objectives=None, inputs=INPUTS, vocabularies=None, **settings):
    torch.manual_seed(0)
    model = compose(
        VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0, fuse=fuse),
        inputs | {"image": regions(**settings)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives(objectives or {}, vocabularies or {}),
    )
    return perturbed(model)


def examples():
    """Examples with 2, 3 and 5 regions."""
    pairs = [("a red cat", "two dogs on grass"), ("the ball", "what color is the ball"), ("grass", "a cat")]
    return [
        Example(f"e{n}", {"caption": a, "second": b, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, (a, b) in enumerate(pairs)
    ]
