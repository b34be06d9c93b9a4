"""Attention of generated words: of the predicting slots, by input, layer and head."""

import pytest
import torch
from kit import toys
from kit.weights import perturbed
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text

from mmgen.attention_maps import all_layers, last_layer, one_layer, token_attention, words_of
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.model import compose


def attention_of(model, batch, texts, layer: int = -1) -> list[dict[str, torch.Tensor]]:
    """The attention of one layer's tokens to the slots of each input, and to special and written ones."""
    return [by_input(attention) for attention in token_attention(model, batch, texts, {"": one_layer(layer)})]


def by_input(attention, way=""):
    slots = {**attention.inputs, "special": attention.special, "written": attention.written}
    return {name: attention.weights[way][:, places] for name, places in slots.items()}


def test_attention_is_that_of_the_predicting_slots_and_sums_to_one():
    """Compared with naive generation: one row, [MASK] after the generated tokens."""
    model = toys.model()
    examples = [resolve(example) for example in toys.examples(3)]
    texts = [model.generator.reader.targets(example)[0] for example in examples]
    batch = Collator(model, model.inputs, objectives=())(examples)
    for row, (example, attention) in enumerate(zip(examples, attention_of(model, batch, texts), strict=True)):
        assert attention["caption"].shape == (
            len(texts[row]),
            len(model.embedders["caption"].reader.read(example)),
        )
        total = sum(weights.sum(1) for weights in attention.values())
        assert torch.allclose(total, torch.ones_like(total), atol=1e-5)
        alone = attention_of(model, Collator(model, model.inputs, objectives=())([example]), [texts[row]])[0]
        assert torch.allclose(attention["caption"], alone["caption"], atol=1e-5)
        first = naive(model, example.inputs["caption"])[0]
        assert torch.allclose(attention["caption"][0], first, atol=1e-5)


def naive(model, *texts: str) -> list[torch.Tensor]:
    """Per text (N,): the attention of a single [MASK] after `[CLS] text [SEP] text`, mean over the last layer's heads,
    by transformers itself."""
    backbone = model.backbone
    parts = [backbone.encode_text(text) for text in texts]
    ids = [backbone.start_id]
    for part in parts:
        ids += [*part, backbone.end_id]
    row = torch.tensor([[*ids[:-1], backbone.mask_id]])
    mask = torch.zeros(1, 1, row.shape[1], row.shape[1])
    mask[:, :, :-1, -1] = torch.finfo(torch.float32).min  # the input does not see generated tokens
    backbone.model.set_attn_implementation("eager")
    with torch.no_grad():
        attention = backbone.model.base_model(input_ids=row, attention_mask=mask, output_attentions=True).attentions[-1]
    seen, attentions = attention[0, :, -1, 1:].mean(0), []
    for part in parts:
        attentions.append(seen[: len(part)])
        seen = seen[len(part) + 1 :]
    return attentions


def test_attention_is_split_by_input():
    """Rows of different lengths in one batch, each compared with the row alone."""
    torch.manual_seed(0)
    inputs = {"caption": Text(), "hint": Text()}
    model = perturbed(compose(Bert(**toys.SIZES), inputs, Masked(), texts=toys.TEXTS))
    texts = [("what color", "red ball near tree"), ("big dog under the house", "where"), ("ball", "how many are there")]
    examples = [Example(str(n), {"caption": caption, "hint": hint}) for n, (caption, hint) in enumerate(texts)]
    batch = Collator(model, model.inputs, objectives=())(examples)
    for row, attention in zip(texts, attention_of(model, batch, [[5, model.backbone.end_id]] * 3), strict=True):
        for weights, alone in zip(attention.values(), naive(model, *row), strict=False):
            assert torch.allclose(weights[0], alone, atol=1e-5)


def test_all_layers_is_the_mean_of_each_layer():
    model = toys.model()
    example = resolve(toys.examples(1)[0])
    batch, text = Collator(model, model.inputs, objectives=())([example]), [[5, 6, model.backbone.end_id]]
    per_layer = [attention_of(model, batch, text, layer=layer)[0]["caption"] for layer in range(2)]
    (attention,) = token_attention(model, batch, text, {"last": last_layer, "all": all_layers})
    assert torch.allclose(by_input(attention, "all")["caption"], (per_layer[0] + per_layer[1]) / 2, atol=1e-6)
    assert torch.equal(by_input(attention, "last")["caption"], per_layer[1])
    assert not torch.allclose(per_layer[0], per_layer[1], atol=1e-3)


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (
            ["what", "what is", "what isn", "what isn't", "what isn't it", "what isn't it?", "what isn't it?"],
            [("what", [0]), (" isn", [1, 2]), ("'t", [3]), (" it", [4]), ("?", [5])],
        ),
        (["a", "a .", "a. b"], [("a", [0]), (" .", [1]), (" b", [2])]),
        ([], []),
    ],
)
def test_pieces_are_joined_to_words(says, words):
    assert words_of(says) == words
