"""VL-BERT: equal to the original code on its weights; starts as BERT; generated words get visual embeddings too."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from kit import reencoded
from kit.oracles import ORACLES
from kit.refusals import refusal
from kit.vlbert import WORDS, build_model, examples, record, regions, slots_of
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_vlbert import VlBert, VlBertRegions
from mmgen_vlbert.backbone import VlBertBackbone
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.examples import All
from mmgen.model import compose
from mmgen.sequence import lay_out
from mmgen.tensors import Segment


class TestVlBert(mmgen.testing.BackboneSuite):
    def config(self):
        return VlBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)


class Ids:
    """A tokenizer that is never called: the oracles' inputs are token ids."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0


@pytest.fixture(scope="module")
def oracle():
    folder = ORACLES / "vlbert"
    tensors = load_file(folder / "original.safetensors")
    of = {"in": {}, "out": {}, "model": {}, "down": {}}
    for name, tensor in tensors.items():
        first, _, rest = name.partition(".")
        of.setdefault(first, {})[rest] = tensor
    named = {f"module.vlbert.{name}": tensor for name, tensor in of["model"].items()}
    named["module.object_linguistic_embeddings.weight"] = tensors["object_word"]
    for part in ("weight", "bias"):
        named[f"module.image_feature_extractor.obj_downsample.1.{part}"] = of["down"][part]
    sizes = json.loads((folder / "config.json").read_text())
    return SimpleNamespace(
        sizes=sizes, inputs=of["in"], out=of["out"], model=of["model"], weights=named, tensors=tensors
    )


def parts_of(oracle):
    """The backbone and the embedder with the original code's weights."""
    known = {name: value for name, value in oracle.sizes.items() if name in BertConfig().to_dict()}
    model = BertForMaskedLM(BertConfig(**{**known, "type_vocab_size": 2}))
    backbone = VlBertBackbone(VlBert(), model, Ids()).eval()
    backbone.add_pooler()
    missing, unexpected = backbone.load_state_dict(backbone.published(oracle.weights), strict=False)
    assert not unexpected and set(missing) <= {
        "model.cls.predictions.decoder.bias",
        "model.cls.predictions.decoder.weight",
    }
    config = VlBertRegions(width=2048, fingerprint={}, fields=("image",), whole_image="first")
    embedder = config.build(backbone).eval()
    missing, unexpected = embedder.load_state_dict(embedder.published(oracle.weights), strict=False)
    assert not unexpected and missing == ["without_picture", "hidden_word", "hidden_look"]
    return backbone, embedder


def same(ours, theirs):
    assert torch.allclose(ours, theirs, atol=1e-5 * max(1.0, theirs.abs().max().item())), (ours - theirs).abs().max()


@torch.no_grad()
def test_geometry_to_logits_equal_the_original_code(oracle):
    backbone, embedder = parts_of(oracle)
    inputs, out = oracle.inputs, oracle.out
    text_mask, mask = inputs["text_mask"], inputs["object_mask"]
    boxes = inputs["boxes"] / inputs["size"].repeat(1, 2).unsqueeze(1)
    same(embedder.where(boxes)[mask], oracle.tensors["geometry"][mask])
    same(embedder.looks(inputs["features"], boxes)[mask], oracle.tensors["region"][mask])
    collated = {"features": inputs["features"], "boxes": boxes, "mask": mask}
    text = Segment(backbone.embed(inputs["ids"]), text_mask, inputs["types"])
    slots, _ = lay_out([("caption", text), ("image", embedder(**collated))])
    states = backbone.encode(replace(slots, states=slots.states + embedder.add(slots, collated, "image"))).last
    words, objects = states[:, : text_mask.shape[1]], states[:, text_mask.shape[1] : -1]
    same(words[text_mask], out["text"][text_mask])
    same(objects[mask], out["object"][mask])
    same(backbone.logits(words)[text_mask], out["mlm"][text_mask])
    same(backbone.pooled(states), out["pooled"])
    head = (oracle.model[f"relationsip_head.caption_image_relationship.{part}"] for part in ("weight", "bias"))
    same(torch.nn.functional.linear(backbone.pooled(states), *head), out["match"])


def test_rows_are_laid_out_as_in_the_paper():
    """Text, then the whole picture and its regions at one position, then the end slot."""
    model, some = build_model(), examples()
    slots = slots_of(model, some)
    for row, example in enumerate(some):
        image_slots, count = slots.of("image")[row], len(example.inputs["image"].features)
        words = int(slots.layout.real[row].sum()) - count - 2
        assert slots.positions[row][image_slots].tolist() == [words] * (count + 1) + [words + 1]
        assert slots.types[row][image_slots].tolist() == [2] * (count + 2)
        rest = slots.layout.real[row] & ~image_slots
        assert slots.positions[row][rest].tolist() == list(range(words)) and not slots.types[row][rest].any()
    prefix = model.prefix(Collator(model, model.inputs, ())(some))
    assert prefix.free.squeeze(1).tolist() == [int(p.max()) + 1 for p in slots.positions]


@torch.no_grad()
def test_starts_as_bert():
    """Visual embeddings are initialised as 0, so that the words' states are BERT's."""
    model, some = build_model(perturb=False), examples()[:1]
    slots = slots_of(model, some)
    words = slots.layout.real & ~slots.of("image")
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    assert torch.equal(slots.states[0][words[0]], model.backbone.embed(torch.tensor(ids)))
    region_states = slots.states[0][slots.of("image")[0]]
    embedder = model.embedders["image"]
    assert torch.equal(region_states, torch.stack([*[embedder.object_word] * 4, embedder.end]))


@pytest.mark.slow
@torch.no_grad()
@pytest.mark.parametrize("settings", [{"whole_image": "first"}, {"mentions": ("caption",)}])
def test_packed_training_and_cached_generation_equal_the_naive_ones(settings):
    model, some = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, **settings)}), examples()
    if "mentions" in settings:
        some[0] = replace(some[0], inputs=some[0].inputs | {"caption_mentions": All(((2, 5, (0, 2)),))})
    reencoded.assert_matches_reencoding(model, some)
    changed = replace(some[0], inputs=some[0].inputs | {"image": record("other", 3, 7)})
    assert not torch.allclose(reencoded.after(model, some[0], []), reencoded.after(model, changed, []))


@torch.no_grad()
def test_dropout_is_drawn_once_for_regions_and_words():
    """The words' visual embedding equals that of the first region, in training too."""
    model, example = build_model(perturb=False), examples()[0]
    embedder = model.embedders["image"]
    embedder.dropout.p = 0.5
    for norm in (embedder.word_norm, embedder.region_norm):
        norm.weight.fill_(1.0)
    embedder.train()
    prefix = model.prefix(Collator(model, model.inputs, ())([example]))
    image_slots, states = prefix.slots.of("image")[0], prefix.slots.states[0]
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    seen = states[image_slots][0] - embedder.object_word
    assert torch.allclose(states[~image_slots], model.backbone.embed(torch.tensor(ids)) + seen, atol=1e-5)
    assert torch.allclose(prefix.term[0], seen, atol=1e-5)
    again = model.prefix(Collator(model, model.inputs, ())([example])).slots.states[0]
    assert not torch.allclose(again[image_slots][0], states[image_slots][0])  # every forward pass draws again


def test_two_token_types_are_too_few():
    message = refusal(
        compose,
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
        {"image": regions()},
        Masked(),
        texts=[WORDS] * 3,
    )
    assert message == (
        "vlbert_regions needs a third token type, but the backbone has 2; set backbone.extra_token_types, or use the "
        'backbone "vlbert"'
    )
