"""Small encoders of every family, and the paper's procedure over them, written out a second time.

A plain row X, y_<t, [MASK] goes through transformers' model with an attention function of its own, which knows indices
of slots only: nothing of mmgen's layouts, positions, caches or attention."""

import pytest
import torch
from mmgen_encoders import AnyEncoder
from transformers import AttentionInterface
from transformers.models.auto import CONFIG_MAPPING

from kit.weights import built_once, perturbed
from mmgen.testing import TEXTS
from mmgen.testing.rows import behind, some_ids
from mmgen.testing.rows import prefix as inputs

SIZES = {
    # a window of four slots to either side; a row of all positions takes long
    "modernbert": {"local_attention": 8, "max_position_embeddings": 200},
    "ultrabert": {"sliding_window": 4},
    "eurobert": {"num_key_value_heads": 2},  # shared by pairs of heads
    "mobilebert": {
        "trigram_input": False,
        "normalization_type": "layer_norm",
    },  # published ones read neighbouring words
}
QUICK = ("modernbert", "eurobert", "albert")
REACHED = (
    *QUICK,
    *("bert", "camembert", "data2vec-text", "distilbert", "electra", "ernie", "gte", "jina_embeddings_v3", "layoutlm"),
    *(
        "mobilebert",
        "nomic_bert",
        "roberta",
        "roberta-prelayernorm",
        "roc_bert",
        "ultrabert",
        "xlm-roberta",
        "xlm-roberta-xl",
    ),
)


class Tiny(AnyEncoder):
    """An encoder of few weights and narrow windows."""

    num_hidden_layers: int = 3
    hidden_size: int = 32
    num_attention_heads: int = 4
    vocab_size: int = 64

    def sizes(self):
        return SIZES.get(self.family, {})


@built_once
def build(family: str, seed: int = 0):
    """A tiny encoder with random weights that are not tiny, in eval mode."""
    if family not in CONFIG_MAPPING:
        pytest.skip(f"the installed transformers has no {family}")
    torch.manual_seed(seed)
    return perturbed(Tiny(family=family).build(texts=TEXTS), 0.05)


def random_ids(backbone, rows: int, length: int):
    """Tokens (rows, length) other than special ones."""
    words = torch.tensor(some_ids(backbone, 8))
    return words[torch.randint(8, (rows, length), generator=torch.Generator().manual_seed(1))]


def source_logits(backbone, ids):
    """Logits of transformers' own model."""
    return backbone.model(input_ids=ids).logits


def by_index(module, query, key, value, attention_mask, naive_inputs, scaling=None, sliding_window=None, **_):
    """Attention of plain rows whose first slots are the input; a later slot sees everything before it."""
    slots = torch.arange(query.shape[2])
    seen = (slots < naive_inputs) | ((slots <= slots[:, None]) & (slots[:, None] >= naive_inputs))
    if sliding_window is not None:
        seen = seen & ((slots - slots[:, None]).abs() <= sliding_window - 1)
    groups = query.shape[1] // key.shape[1]
    scores = query @ key.repeat_interleave(groups, 1).transpose(2, 3) * scaling
    weights = (scores + torch.where(seen, 0.0, -1e30)).softmax(-1)
    return (weights @ value.repeat_interleave(groups, 1)).transpose(1, 2).contiguous(), weights


def naive(backbone, prefix: torch.Tensor, written: list[int]) -> torch.Tensor:
    """log P(y_t | X, y_<t), (V,), of embedded X (P, E) without padding and tokens y_<t."""
    AttentionInterface.register("by_index", by_index)
    states = torch.cat([prefix, backbone.embed(torch.tensor([*written, backbone.mask_id]))])
    first = backbone.first_position
    backbone.model.set_attn_implementation("by_index")
    out = backbone.model(
        inputs_embeds=states[None],
        position_ids=torch.arange(first, first + len(states))[None],
        naive_inputs=len(prefix),
    )
    return out.logits[0, -1].log_softmax(-1)


def ragged(backbone):
    """Two inputs beyond the window, with random states of regions in front, padded (`Slots`); the same inputs without
    padding, (P, E) each; and two targets behind each."""
    ids = some_ids(backbone, 8)
    before = inputs(backbone, [[backbone.start_id, *ids * 3], [backbone.start_id, *ids[2:], *ids, *ids[:4]]])
    regions = torch.randn(2, 3, before.states.shape[2], generator=torch.Generator().manual_seed(5))
    scale = before.states.detach().std()
    states = torch.cat([before.states[:, :1], regions * scale, before.states[:, 4:]], 1)
    before = type(before)(states, before.positions, before.types, before.layout)
    alone = [row[real] for row, real in zip(states, before.layout.real, strict=True)]
    return before, alone, [[[*ids[3:6], backbone.end_id], ids[:2]], [ids[:1], ids[2:7]]]


def packed_log_probabilities(backbone, before, targets) -> list[torch.Tensor]:
    """log P (V,) at every [MASK] of rows in which all targets are packed, row by row."""
    tail = behind(backbone, before, targets)
    logits = backbone.logits(backbone.encode(before.followed_by(tail)).last[:, before.positions.shape[1] :])
    return [*logits.log_softmax(-1)[tail.layout.role == 3]]


def naive_log_probabilities(backbone, alone, targets) -> list[torch.Tensor]:
    """The same by `naive`."""
    return [
        naive(backbone, prefix, target[:t])
        for prefix, groups in zip(alone, targets, strict=True)
        for target in groups
        for t in range(len(target))
    ]
