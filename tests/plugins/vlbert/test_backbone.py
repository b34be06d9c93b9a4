"""VL-BERT: equal to the original code on its weights; starts as BERT; generated words get visual embeddings too."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from kit import reencoded
from kit.beside import shared
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_text import Text
from mmgen_vlbert import VlBert, VlBertRegions
from mmgen_vlbert.backbone import VlBertBackbone
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.model import compose
from mmgen.parts import Record
from mmgen.sequence import lay_out
from mmgen.tensors import All, Example, Segment

D = 20
WORDS = "what color is the ball . a red cat and two dogs on grass"


class TestVlBert(mmgen.testing.BackboneSuite):
    def config(self):
        return VlBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)


class TestRegions(mmgen.testing.EmbedderSuite):
    def backbone_config(self):
        return VlBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def config(self):
        store = {"width": D, "fingerprint": {"extractor": "toy"}, "classes": ("cat", "dog")}
        return VlBertRegions(fields=("image",), mentions=("caption",), dropout=0.0, **store)

    def examples(self):
        mentions = All(((2, 9, (0, 1)),))
        return [
            Example(f"e{n}", {"caption": "a red cat", "image": record("p", 2 + n), "caption_mentions": mentions})
            for n in range(2)
        ]


def record(name, count, seed=0):
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 0.5, (count, 2))
    boxes = np.concatenate([first, first + 0.4], 1).astype(np.float32)
    features = rng.standard_normal((count, D)).astype(np.float32)
    return Record(name, features, boxes, classes=Classes.surest(("cat", "dog"), rng.dirichlet((1, 1), count)))


def regions(**settings):
    return VlBertRegions(width=D, fingerprint={"extractor": "toy"}, classes=("cat", "dog"), **settings)


# --- the original code ----------------------------------------------------------------------------------------------


class Ids:
    """A tokenizer that is never called: the oracles' inputs are token ids."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0


@pytest.fixture(scope="module")
def oracle():
    folder = shared("oracles/vlbert")
    tensors = load_file(folder / "original.safetensors")
    of = {
        first: {
            name.removeprefix(f"{first}."): tensor for name, tensor in tensors.items() if name.startswith(f"{first}.")
        }
        for first in ("in", "out", "model", "down")
    }
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


# --- a whole model --------------------------------------------------------------------------------------------------


def build_model(perturbed=True, inputs=None, **settings):
    torch.manual_seed(0)
    model = compose(
        VlBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0),
        inputs or {"caption": Text(), "image": regions(dropout=0.0, **settings)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
    )
    if perturbed:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def examples():
    """Of 2, 3 and 5 regions."""
    captions = ("a red cat", "the ball", "what color is the ball")
    return [
        Example(f"e{n}", {"caption": caption, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, caption in enumerate(captions)
    ]


def slots_of(model, some):
    return model.prefix(Collator(model, model.inputs, ())(some)).slots


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
    model, some = build_model(perturbed=False), examples()[:1]
    slots = slots_of(model, some)
    words = slots.layout.real & ~slots.of("image")
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    assert torch.equal(slots.states[0][words[0]], model.backbone.embed(torch.tensor(ids)))
    region_states = slots.states[0][slots.of("image")[0]]
    embedder = model.embedders["image"]
    assert torch.equal(region_states, torch.stack([*[embedder.object_word] * 4, embedder.end]))


@torch.no_grad()
def test_words_get_the_whole_picture_or_the_region_that_they_mention():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",))})
    plain = examples()[0]
    with_mentions = replace(plain, inputs=plain.inputs | {"caption_mentions": All(((2, 9, (1,)),))})
    embedder = model.embedders["image"]
    features = torch.from_numpy(plain.inputs["image"].features).unsqueeze(0)
    boxes = torch.from_numpy(plain.inputs["image"].boxes).unsqueeze(0)
    picture_looks = embedder.looks(features.mean(1, keepdim=True), torch.tensor([[[0.0, 0, 1, 1]]]))
    picture_term = embedder.word_norm(picture_looks)[0, 0]
    region_term = embedder.word_norm(embedder.looks(features, boxes))[0, 1]
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    words = model.backbone.embed(torch.tensor(ids))
    slots = slots_of(model, [plain])
    assert torch.allclose(slots.states[0, : len(ids)], words + picture_term, atol=1e-6)
    slots = slots_of(model, [with_mentions])
    terms = slots.states[0, : len(ids)] - words
    spans = model.embedders["caption"].describe(plain)["spans"]
    for place in range(len(ids)):
        inside = 0 < place <= len(spans) and spans[place - 1][0] < 9 and spans[place - 1][1] > 2
        assert torch.allclose(terms[place], region_term if inside else picture_term, atol=1e-6), place


@torch.no_grad()
def test_rows_without_a_picture_have_a_trained_visual_embedding():
    model = build_model()
    text = replace(examples()[0], inputs={"caption": "a red cat"})
    batch = Collator(model, ["caption"], ())([text])
    term = model.embedders["image"].word_norm(model.embedders["image"].without_picture)
    prefix = model.prefix(batch)
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat")]
    assert torch.allclose(prefix.slots.states[0], model.backbone.embed(torch.tensor(ids)) + term, atol=1e-6)
    assert torch.allclose(prefix.term, term.unsqueeze(0))


@torch.no_grad()
def test_a_word_that_mentions_several_regions_gets_their_mean():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",))})
    example = examples()[0]
    with_mentions = replace(example, inputs=example.inputs | {"caption_mentions": All(((2, 5, (0, 2)), (0, 1, (9,))))})
    embedder, picture = model.embedders["image"], example.inputs["image"]
    looks = embedder.looks(
        torch.from_numpy(picture.features).unsqueeze(0), torch.from_numpy(picture.boxes).unsqueeze(0)
    )
    terms = embedder.word_norm(looks)[0]
    plain, with_mentions = (slots_of(model, [item]).states[0] for item in (example, with_mentions))
    spans = model.embedders["caption"].describe(example)["spans"]
    words = [1 + n for n, (start, stop) in enumerate(spans) if start < 5 and stop > 2]
    embedded = model.backbone.embed(torch.tensor(model.backbone.encode_text("a red cat")))
    for place in words:
        assert torch.allclose(with_mentions[place], embedded[place - 1] + (terms[0] + terms[2]) / 2, atol=1e-6)
    rest = [place for place in range(len(plain)) if place not in words]
    assert torch.allclose(with_mentions[rest], plain[rest], atol=1e-6)  # there is no tenth region


@torch.no_grad()
def test_another_input_of_regions_replaces_an_absent_one():
    inputs = {"caption": Text(), "image": regions(dropout=0.0), "places": regions(dropout=0.0, fields=("image",))}
    model, alone = build_model(inputs=inputs), build_model()
    alone.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if ".places." not in name})
    both, single_prefix = (
        composed_model.prefix(Collator(composed_model, ["caption", "image"], ())(examples()))
        for composed_model in (model, alone)
    )
    assert torch.equal(both.slots.states, single_prefix.slots.states) and torch.equal(both.term, single_prefix.term)
    without = model.prefix(Collator(model, ["caption"], ())(examples()))  # both are absent and have a trained embedding
    terms = [model.embedders[name].word_norm(model.embedders[name].without_picture) for name in ("image", "places")]
    assert torch.allclose(without.term[0], sum(terms), atol=1e-6)


@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_description_of_two_pictures_has_a_line_per_slot(whole_image):
    model = build_model(whole_image=whole_image)
    first = replace(record("a", 2), region_names=("cat", "dog"), scores=np.array([0.5, 0.25], np.float32))
    pair = Example("e", {"caption": "a cat", "image": All((first, record("b", 1)))})
    described, whole_label = model.embedders["image"].describe(pair), ["the whole picture"] * (whole_image == "mean")
    assert described["names"] == [*whole_label, "cat", "dog", *whole_label, "region 1", "the end"]
    assert described["pictures"] == [0] * (len(whole_label) + 2) + [1] * (len(whole_label) + 2)
    slots = slots_of(model, [pair])
    assert int(slots.of("image").sum()) == len(described["names"]) == len(described["boxes"])
    assert model.embedders["image"].reader.slots(pair) == len(described["names"])
    assert not described["scores"]  # the second picture has none
    expected = (
        [False] * (len(whole_label) or 1) + [True] * (1 + bool(whole_label)),
        [False] * (len(whole_label) or 1) + [True] * bool(whole_label),
    )
    assert described["regions"] == [*expected[0], *expected[1], False]


def test_mentions_without_an_input_are_refused_before_training():
    reader = build_model(inputs={"caption": Text(), "image": regions(mentions=("caption",))}).embedders["image"].reader
    example = examples()[0]
    reader.find_gaps([example])
    with_mentions = replace(example, inputs=example.inputs | {"question_mentions": All(((0, 1, (0,)),))})
    with pytest.raises(DataError) as error:
        reader.find_gaps([example, with_mentions])
    assert str(error.value) == (
        "example 'e0' has question_mentions, but mentions = ['caption'] does not contain 'question'; add 'question', "
        "and name the input that reads this field 'question'"
    )


@torch.no_grad()
def test_mentions_are_of_the_first_picture():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",), max_regions=2)})
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    with_mentions = replace(
        pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))}
    )  # of an unread region
    assert torch.equal(slots_of(model, [pair]).states, slots_of(model, [with_mentions]).states)


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, {"whole_image": "first"}, {"mentions": ("caption",)}])
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
    model, example = build_model(perturbed=False), examples()[0]
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


def test_corners_as_in_the_paper():
    embedder = build_model(geometry="corners").embedders["image"]
    box = torch.tensor([[[0.1, 0.2, 0.3, 0.6]]])
    lengths = 1000 ** (torch.arange(256) / 256)
    expected = torch.cat([torch.cat([(100 * x / lengths).sin(), (100 * x / lengths).cos()]) for x in box[0, 0]])
    assert torch.allclose(embedder.where(box)[0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(), (32,)])
def test_a_published_layer_of_the_wrong_shape_is_passed_on(shape):
    """Loading the weights reports the error."""
    embedder = build_model().embedders["image"]
    name = "image_feature_extractor.obj_downsample.1.weight"
    assert embedder.published({name: torch.ones(shape)})["projection.weight"].shape == shape


@pytest.mark.parametrize("front", ["vlbert.", "module.vlbert."])
def test_published_weights_without_a_token_type_of_regions_are_refused(front):
    name = f"{front}token_type_embeddings.weight"
    backbone = build_model().backbone
    assert "model.bert.embeddings.token_type_embeddings.weight" in backbone.published({name: torch.ones(3, 32)})
    with pytest.raises(DataError) as caught:
        backbone.published({name: torch.ones(2, 32)})
    assert str(caught.value) == (
        f"'{name}' has shape (2, 32), but VL-BERT needs 3 rows, the last for regions; the file is damaged"
    )


def test_plain_bert_leaves_the_token_type_of_regions_at_its_initial_value():
    backbone = build_model().backbone
    name = "bert.embeddings.token_type_embeddings.weight"
    ours, theirs = backbone.state_dict()[f"model.{name}"], torch.ones(2, 32)
    assert torch.equal(backbone.published({name: theirs})[f"model.{name}"], torch.cat([theirs, ours[2:]]))


def test_two_token_types_are_too_few():
    with pytest.raises(DataError) as caught:
        compose(
            Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
            {"image": regions()},
            Masked(),
            texts=[WORDS] * 3,
        )
    assert str(caught.value) == (
        "vlbert_regions needs a third token type, but the backbone has 2; set backbone.extra_token_types, or use the "
        'backbone "vlbert"'
    )
