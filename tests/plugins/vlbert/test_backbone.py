"""VL-BERT: equal to the original code on its weights; begins as BERT; its visual terms reach written words."""

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
        kept = {"width": D, "fingerprint": {"extractor": "toy"}, "classes": ("cat", "dog")}
        return VlBertRegions(fields=("image",), mentions=("caption",), dropout=0.0, **kept)

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
    """A tokenizer that nothing is asked of: the oracles' inputs are numbers."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0


@pytest.fixture(scope="module")
def oracle():
    folder = shared("oracles/vlbert")
    tensors = load_file(folder / "original.safetensors")
    of = {
        first: {name.removeprefix(f"{first}."): each for name, each in tensors.items() if name.startswith(f"{first}.")}
        for first in ("in", "out", "model", "down")
    }
    named = {f"module.vlbert.{name}": each for name, each in of["model"].items()}
    named["module.object_linguistic_embeddings.weight"] = tensors["object_word"]
    for part in ("weight", "bias"):
        named[f"module.image_feature_extractor.obj_downsample.1.{part}"] = of["down"][part]
    sizes = json.loads((folder / "config.json").read_text())
    return SimpleNamespace(
        sizes=sizes, given=of["in"], out=of["out"], model=of["model"], weights=named, tensors=tensors
    )


def parts_of(oracle):
    """Backbone and regions on the original code's weights."""
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
def test_from_geometry_to_logits_the_original_codes(oracle):
    backbone, embedder = parts_of(oracle)
    given, out = oracle.given, oracle.out
    text_mask, mask = given["text_mask"], given["object_mask"]
    boxes = given["boxes"] / given["size"].repeat(1, 2).unsqueeze(1)
    same(embedder.where(boxes)[mask], oracle.tensors["geometry"][mask])
    same(embedder.looks(given["features"], boxes)[mask], oracle.tensors["region"][mask])
    collated = {"features": given["features"], "boxes": boxes, "mask": mask}
    text = Segment(backbone.embed(given["ids"]), text_mask, given["types"])
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


def composed(learnt=True, inputs=None, **settings):
    torch.manual_seed(0)
    made = compose(
        VlBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0),
        inputs or {"caption": Text(), "image": regions(dropout=0.0, **settings)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
    )
    if learnt:
        with torch.no_grad():
            for parameter in made.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def examples():
    """Of 2, 3 and 5 regions."""
    captions = ("a red cat", "the ball", "what color is the ball")
    return [
        Example(f"e{n}", {"caption": caption, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, caption in enumerate(captions)
    ]


def slots_of(made, some):
    return made.prefix(Collator(made, made.inputs, ())(some)).slots


def test_rows_are_laid_out_as_the_paper_does():
    """Text, the whole picture and its regions at one position, the end behind them."""
    made, some = composed(), examples()
    slots = slots_of(made, some)
    for row, example in enumerate(some):
        own, count = slots.of("image")[row], len(example.inputs["image"].features)
        words = int(slots.layout.real[row].sum()) - count - 2
        assert slots.positions[row][own].tolist() == [words] * (count + 1) + [words + 1]
        assert slots.types[row][own].tolist() == [2] * (count + 2)
        rest = slots.layout.real[row] & ~own
        assert slots.positions[row][rest].tolist() == list(range(words)) and not slots.types[row][rest].any()
    prefix = made.prefix(Collator(made, made.inputs, ())(some))
    assert prefix.free.squeeze(1).tolist() == [int(p.max()) + 1 for p in slots.positions]


@torch.no_grad()
def test_begins_as_bert():
    """Visual terms begin as 0: the words' logits are BERT's, with regions that look like nothing."""
    made, some = composed(learnt=False), examples()[:1]
    slots = slots_of(made, some)
    words = slots.layout.real & ~slots.of("image")
    ids = [made.backbone.start_id, *made.backbone.encode_text("a red cat"), made.backbone.end_id]
    assert torch.equal(slots.states[0][words[0]], made.backbone.embed(torch.tensor(ids)))
    own = slots.states[0][slots.of("image")[0]]
    embedder = made.embedders["image"]
    assert torch.equal(own, torch.stack([*[embedder.object_word] * 4, embedder.end]))


@torch.no_grad()
def test_words_get_the_whole_picture_or_the_region_that_they_mean():
    made = composed(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",))})
    plain = examples()[0]
    told = replace(plain, inputs=plain.inputs | {"caption_mentions": All(((2, 9, (1,)),))})
    embedder = made.embedders["image"]
    features = torch.from_numpy(plain.inputs["image"].features).unsqueeze(0)
    boxes = torch.from_numpy(plain.inputs["image"].boxes).unsqueeze(0)
    whole = embedder.word_norm(embedder.looks(features.mean(1, keepdim=True), torch.tensor([[[0.0, 0, 1, 1]]])))[0, 0]
    meant = embedder.word_norm(embedder.looks(features, boxes))[0, 1]
    ids = [made.backbone.start_id, *made.backbone.encode_text("a red cat"), made.backbone.end_id]
    words = made.backbone.embed(torch.tensor(ids))
    slots = slots_of(made, [plain])
    assert torch.allclose(slots.states[0, : len(ids)], words + whole, atol=1e-6)
    slots = slots_of(made, [told])
    terms = slots.states[0, : len(ids)] - words
    spans = made.embedders["caption"].describe(plain)["spans"]
    for place in range(len(ids)):
        inside = 0 < place <= len(spans) and spans[place - 1][0] < 9 and spans[place - 1][1] > 2
        assert torch.allclose(terms[place], meant if inside else whole, atol=1e-6), place


@torch.no_grad()
def test_rows_without_a_picture_have_a_learnt_term():
    made = composed()
    text = replace(examples()[0], inputs={"caption": "a red cat"})
    batch = Collator(made, ["caption"], ())([text])
    term = made.embedders["image"].word_norm(made.embedders["image"].without_picture)
    prefix = made.prefix(batch)
    ids = [made.backbone.start_id, *made.backbone.encode_text("a red cat")]
    assert torch.allclose(prefix.slots.states[0], made.backbone.embed(torch.tensor(ids)) + term, atol=1e-6)
    assert torch.allclose(prefix.term, term.unsqueeze(0))


@torch.no_grad()
def test_a_word_that_means_several_regions_gets_their_mean():
    made = composed(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",))})
    example = examples()[0]
    told = replace(example, inputs=example.inputs | {"caption_mentions": All(((2, 5, (0, 2)), (0, 1, (9,))))})
    embedder, own = made.embedders["image"], example.inputs["image"]
    looks = embedder.looks(torch.from_numpy(own.features).unsqueeze(0), torch.from_numpy(own.boxes).unsqueeze(0))
    terms = embedder.word_norm(looks)[0]
    plain, told = (slots_of(made, [each]).states[0] for each in (example, told))
    spans = made.embedders["caption"].describe(example)["spans"]
    words = [1 + n for n, (start, stop) in enumerate(spans) if start < 5 and stop > 2]
    embedded = made.backbone.embed(torch.tensor(made.backbone.encode_text("a red cat")))
    for place in words:
        assert torch.allclose(told[place], embedded[place - 1] + (terms[0] + terms[2]) / 2, atol=1e-6)
    rest = [place for place in range(len(plain)) if place not in words]
    assert torch.allclose(told[rest], plain[rest], atol=1e-6)  # there is no tenth region


@torch.no_grad()
def test_another_input_of_regions_takes_the_place_of_the_one_that_is_absent():
    inputs = {"caption": Text(), "image": regions(dropout=0.0), "places": regions(dropout=0.0, fields=("image",))}
    made, alone = composed(inputs=inputs), composed()
    alone.load_state_dict({name: each for name, each in made.state_dict().items() if ".places." not in name})
    both, one = (each.prefix(Collator(each, ["caption", "image"], ())(examples())) for each in (made, alone))
    assert torch.equal(both.slots.states, one.slots.states) and torch.equal(both.term, one.term)
    without = made.prefix(Collator(made, ["caption"], ())(examples()))  # neither is there: both have a term
    terms = [made.embedders[name].word_norm(made.embedders[name].without_picture) for name in ("image", "places")]
    assert torch.allclose(without.term[0], sum(terms), atol=1e-6)


@pytest.mark.parametrize("whole", ["mean", "first"])
def test_what_people_see_of_two_pictures_is_a_line_a_slot(whole):
    made = composed(whole_image=whole)
    first = replace(record("a", 2), labels=("cat", "dog"), scores=np.array([0.5, 0.25], np.float32))
    pair = Example("e", {"caption": "a cat", "image": All((first, record("b", 1)))})
    told, own = made.embedders["image"].describe(pair), ["the whole picture"] * (whole == "mean")
    assert told["labels"] == [*own, "cat", "dog", *own, "region 1", "the end"]
    assert told["pictures"] == [0] * (len(own) + 2) + [1] * (len(own) + 2)
    slots = slots_of(made, [pair])
    assert int(slots.of("image").sum()) == len(told["labels"]) == len(told["boxes"])
    assert made.embedders["image"].reader.slots(pair) == len(told["labels"])
    assert not told["scores"]  # the second picture has none
    given = [False] * (len(own) or 1) + [True] * (1 + bool(own)), [False] * (len(own) or 1) + [True] * bool(own)
    assert told["regions"] == [*given[0], *given[1], False]


def test_mentions_that_no_input_is_named_for_are_told_before_learning():
    reader = composed(inputs={"caption": Text(), "image": regions(mentions=("caption",))}).embedders["image"].reader
    example = examples()[0]
    reader.find_gaps([example])
    told = replace(example, inputs=example.inputs | {"question_mentions": All(((0, 1, (0,)),))})
    with pytest.raises(DataError) as error:
        reader.find_gaps([example, told])
    assert str(error.value) == (
        "example 'e0' has question_mentions, and mentions = ['caption'] leaves 'question' out; add it, and call the "
        "input that reads it 'question'"
    )


@torch.no_grad()
def test_mentions_are_of_the_first_picture():
    made = composed(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",), max_regions=2)})
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    told = replace(pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))})  # one that is not read
    assert torch.equal(slots_of(made, [pair]).states, slots_of(made, [told]).states)


@torch.no_grad()
@pytest.mark.parametrize("settings", [{}, {"whole_image": "first"}, {"mentions": ("caption",)}])
def test_packed_learning_and_cached_writing_are_the_naive_ones(settings):
    made, some = composed(inputs={"caption": Text(), "image": regions(dropout=0.0, **settings)}), examples()
    if "mentions" in settings:
        some[0] = replace(some[0], inputs=some[0].inputs | {"caption_mentions": All(((2, 5, (0, 2)),))})
    reencoded.learns_and_writes_alike(made, some)
    other = replace(some[0], inputs=some[0].inputs | {"image": record("other", 3, 7)})
    assert not torch.allclose(reencoded.after(made, some[0], []), reencoded.after(made, other, []))


@torch.no_grad()
def test_what_is_dropped_is_drawn_once_for_regions_and_words():
    """The words' term is the look of the first region, as that one has it, while learning too."""
    made, example = composed(learnt=False), examples()[0]
    embedder = made.embedders["image"]
    embedder.dropout.p = 0.5
    for norm in (embedder.word_norm, embedder.region_norm):
        norm.weight.fill_(1.0)
    embedder.train()
    prefix = made.prefix(Collator(made, made.inputs, ())([example]))
    own, states = prefix.slots.of("image")[0], prefix.slots.states[0]
    ids = [made.backbone.start_id, *made.backbone.encode_text("a red cat"), made.backbone.end_id]
    seen = states[own][0] - embedder.object_word
    assert torch.allclose(states[~own], made.backbone.embed(torch.tensor(ids)) + seen, atol=1e-5)
    assert torch.allclose(prefix.term[0], seen, atol=1e-5)
    again = made.prefix(Collator(made, made.inputs, ())([example])).slots.states[0]
    assert not torch.allclose(again[own][0], states[own][0])  # but anew in every pass


def test_corners_as_the_paper_writes_them():
    made = composed(geometry="corners").embedders["image"]
    box = torch.tensor([[[0.1, 0.2, 0.3, 0.6]]])
    lengths = 1000 ** (torch.arange(256) / 256)
    expected = torch.cat([torch.cat([(100 * x / lengths).sin(), (100 * x / lengths).cos()]) for x in box[0, 0]])
    assert torch.allclose(made.where(box)[0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(), (32,)])
def test_a_damaged_layer_of_published_features_is_handed_on_by_its_shape(shape):
    """Who takes it says what is wrong; it is no mistake of the part."""
    embedder = composed().embedders["image"]
    name = "image_feature_extractor.obj_downsample.1.weight"
    assert embedder.published({name: torch.ones(shape)})["projection.weight"].shape == shape


@pytest.mark.parametrize("front", ["vlbert.", "module.vlbert."])
def test_published_weights_without_a_token_type_of_regions_are_refused(front):
    name = f"{front}token_type_embeddings.weight"
    backbone = composed().backbone
    assert "model.bert.embeddings.token_type_embeddings.weight" in backbone.published({name: torch.ones(3, 32)})
    with pytest.raises(DataError) as told:
        backbone.published({name: torch.ones(2, 32)})
    assert str(told.value) == (
        f"'{name}' is (2, 32), and VL-BERT uses 3 of its rows, the last for regions; it is damaged"
    )


def test_of_bert_alone_the_token_type_of_regions_stays_as_it_was_drawn():
    backbone = composed().backbone
    name = "bert.embeddings.token_type_embeddings.weight"
    own, theirs = backbone.state_dict()[f"model.{name}"], torch.ones(2, 32)
    assert torch.equal(backbone.published({name: theirs})[f"model.{name}"], torch.cat([theirs, own[2:]]))


def test_two_token_types_are_too_few():
    with pytest.raises(DataError) as told:
        compose(
            Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
            {"image": regions()},
            Masked(),
            texts=[WORDS] * 3,
        )
    assert str(told.value) == (
        "vlbert_regions are of a third token type, and the backbone has 2; give it extra_token_types, or take the "
        'backbone "vlbert"'
    )
