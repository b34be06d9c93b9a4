"""VisualBERT: equal to the original code on its weights, and to transformers' classes; late fusion; what it refuses."""

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
from mmgen_objectives import SentenceImage
from mmgen_tasks import AnswerClasses, MultipleChoice, PhraseRegions, TrueOrFalse
from mmgen_text import Text
from mmgen_visualbert import VisualBert, VisualBertRegions, names
from mmgen_visualbert.backbone import VisualBertBackbone
from safetensors.torch import load_file
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    BertConfig,
    BertForMaskedLM,
    VisualBertConfig,
    VisualBertForMultipleChoice,
    VisualBertForPreTraining,
    VisualBertForQuestionAnswering,
    VisualBertForVisualReasoning,
)

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.errors import DataError, PluginError
from mmgen.model import Objectives, compose
from mmgen.objectives import EncodedInputs
from mmgen.parts import Record
from mmgen.sequence import lay_out
from mmgen.storage.published import read_published
from mmgen.tensors import All, Example, Segment, Targets

D = 20
WORDS = "what color is the ball . a red cat and two dogs on grass"


class TestVisualBert(mmgen.testing.BackboneSuite):
    def config(self):
        return VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def backbone(self):
        """With rows of regions that have learnt: they begin as words' first."""
        made = super().backbone()
        with torch.no_grad():
            made.positions.weight[-1].mul_(-1)
        return made


class TestLateFusion(TestVisualBert):
    def config(self):
        return VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, fuse="late")


def record(name, regions, seed=0):
    rng = np.random.default_rng(seed)
    return Record(name, rng.standard_normal((regions, D)).astype(np.float32), rng.uniform(0, 1, (regions, 4)))


def regions(**settings):
    return VisualBertRegions(width=D, fingerprint={"extractor": "toy"}, **settings)


# --- the original code ----------------------------------------------------------------------------------------------


class TestRegions(mmgen.testing.EmbedderSuite):
    def backbone_config(self):
        return VisualBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def config(self):
        return VisualBertRegions(width=D, fingerprint={"extractor": "toy"}, fields=("image",), mentions=("caption",))

    def examples(self):
        return [
            Example(
                f"e{n}",
                {"caption": "a red cat", "image": record("p", 2 + n), "caption_mentions": All(((2, 9, (0, n)),))},
            )
            for n in range(2)
        ]


class Ids:
    """A tokenizer that nothing is asked of: the oracles' inputs are numbers."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0
    is_fast = True


@pytest.fixture(scope="module")
def oracle():
    folder = shared("oracles/visualbert")
    return SimpleNamespace(
        sizes=json.loads((folder / "config.json").read_text()), **_parted(load_file(folder / "original.safetensors"))
    )


def _parted(tensors):
    parted = {}
    for name, tensor in tensors.items():
        first, _, rest = name.partition(".")
        parted.setdefault(first.rstrip("_") if first != "in" else "given", {})[rest] = tensor
    return parted


def backbone_of(sizes, weights, **settings):
    """The backbone on weights of the original code."""
    ours = BertConfig(**{name: value for name, value in sizes.items() if name in BertConfig().to_dict()})
    torch.manual_seed(0)
    made = VisualBertBackbone(VisualBert(**settings), BertForMaskedLM(ours), Ids()).eval()
    made.add_pooler()
    bert = dict(names.as_bert(weights))
    pooler = {name: bert.pop(f"bert.pooler.dense.{name}") for name in ("weight", "bias")}
    missing, unexpected = made.model.load_state_dict(bert, strict=False)
    assert not unexpected and set(missing) <= {"cls.predictions.decoder.bias"}
    made.pooler.dense.load_state_dict(pooler)
    if made.fusion is not None:
        made.fusion.load_state_dict(names.fusion(weights))
    return made


def embedder_of(backbone, weights, **settings):
    made = regions(fields=("image",), mentions=("question",), **settings).build(backbone).eval()
    made.projection.load_state_dict(names.projection(weights))
    return made


def row_of(backbone, embedder, given, pairs=None, picture=None):
    """The original's row: text with its padding between it and the regions. -> slots (B, P)."""
    text = Segment(backbone.embed(given["ids"]), given["text_mask"].bool(), given["types"])
    collated = {"features": given["features"], "mask": given["region_mask"].bool()}
    collated |= {} if picture is None else {"picture": picture}
    slots, _ = lay_out([("question", text), ("image", embedder(**collated))])
    added = embedder.add(slots, collated | ({} if pairs is None else {"pairs": pairs}), "image")
    return slots if added is None else replace(slots, states=slots.states + added)


def pairs_of(alignment):
    """(B, R, A) tokens of every region, -1 for none -> (B, R x A, 3)."""
    found = [
        [(region, 0, int(token)) for region, tokens in enumerate(row) for token in tokens if token >= 0]
        for row in alignment
    ]
    most = max(map(len, found))
    return torch.tensor([[*row, *[(-1, -1, -1)] * (most - len(row))] for row in found])


def inside(given):
    return torch.cat([given["text_mask"], given["region_mask"]], 1).bool()


def same(ours, theirs, mask=...):
    assert torch.allclose(ours[mask], theirs[mask], atol=1e-5 * max(1.0, theirs[mask].abs().max().item())), (
        (ours - theirs)[mask].abs().max()
    )


@torch.no_grad()
def test_pretraining_is_the_original_codes(oracle):
    given, weights = oracle.given, oracle.pretraining
    backbone = backbone_of(oracle.sizes, weights)
    embedder, mask = embedder_of(backbone, weights), inside(given)
    matching = torch.nn.functional.linear
    head = (weights["cls.seq_relationship.weight"], weights["cls.seq_relationship.bias"])
    for pairs, picture, words, match in (
        (None, None, "words", "match"),
        (pairs_of(given["alignment"]), None, "words_aligned", "match_aligned"),
        (None, given["two_pictures"], "words_two_pictures", None),
    ):
        states = backbone.encode(row_of(backbone, embedder, given, pairs, picture)).last
        same(backbone.logits(states), oracle.out[words], mask)
        if match:
            same(matching(backbone.pooled(states), *head), oracle.out[match])
        if words == "words":
            same(states, oracle.out["states"], mask)
            same(backbone.pooled(states), oracle.out["pooled"])


@torch.no_grad()
def test_late_fusion_is_the_original_codes(oracle):
    weights = oracle.late
    backbone = backbone_of(oracle.sizes, weights, fuse="late")
    states = backbone.encode(row_of(backbone, embedder_of(backbone, weights), oracle.given)).last
    same(backbone.logits(states), oracle.out["words_late"], inside(oracle.given))
    head = (weights["cls.seq_relationship.weight"], weights["cls.seq_relationship.bias"])
    same(torch.nn.functional.linear(backbone.pooled(states), *head), oracle.out["match_late"])


@torch.no_grad()
def test_answers_are_the_original_codes(oracle):
    given, weights = oracle.given, oracle.vqa
    backbone = backbone_of(oracle.sizes, weights | head_of(oracle.pretraining))
    states = backbone.encode(row_of(backbone, embedder_of(backbone, weights), given)).last
    known = tuple(map(str, range(given["answers"].shape[1])))
    objective = AnswerClasses().build(backbone, {"answers": known}).eval()
    objective.head.load_state_dict({name: weights[f"classifier.{name}"] for name in ("weight", "bias")})
    asked = given["text_mask"][:, 1:].bool()  # the last word is [SEP]: the one before answers
    model = SimpleNamespace(encode=lambda _: EncodedInputs(states, {"question": states[:, : given["ids"].shape[1]]}))
    batch = SimpleNamespace(inputs={"question": {"mask": asked}})
    same(objective.logits(model, batch), oracle.out["answers"].squeeze(1))
    loss = objective(model, batch, Targets({"loss": 3}, {"answers": given["answers"]})).sums["loss"] / 3
    assert float(loss) == pytest.approx(float(oracle.out["answers_loss"]), rel=1e-5)


def head_of(weights):
    """A masked-LM head for weights that have none; nothing is asked of it."""
    return {name: tensor for name, tensor in weights.items() if name.startswith("cls.predictions.")}


# --- transformers' class --------------------------------------------------------------------------------------------


INPUTS = {"caption": Text(), "second": Text(token_type=1)}


def composed(fuse="early", objectives=None, inputs=INPUTS, labels=None, **settings):
    torch.manual_seed(0)
    made = compose(
        VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=120, dropout=0.0, fuse=fuse),
        inputs | {"image": regions(**settings)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives(objectives or {}, labels or {}),
    )
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def examples():
    """Of 2, 3 and 5 regions."""
    pairs = [("a red cat", "two dogs on grass"), ("the ball", "what color is the ball"), ("grass", "a cat")]
    return [
        Example(f"e{n}", {"caption": a, "second": b, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, (a, b) in enumerate(pairs)
    ]


def of_transformers(made):
    """transformers' class with the model's weights, by the names that it gives them."""
    config = made.backbone.model.config
    sizes = {name: getattr(config, name) for name in ("vocab_size", "hidden_size", "num_hidden_layers")}
    sizes |= {name: getattr(config, name) for name in ("num_attention_heads", "intermediate_size")}
    theirs = VisualBertForPreTraining(
        VisualBertConfig(
            **sizes,
            visual_embedding_dim=D,
            type_vocab_size=2,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    ).eval()
    bert = made.backbone.model.state_dict()
    types = bert.pop("bert.embeddings.token_type_embeddings.weight")
    places = bert.pop("bert.embeddings.position_embeddings.weight")
    bert |= {
        "bert.embeddings.token_type_embeddings.weight": types[:2],
        "bert.embeddings.visual_token_type_embeddings.weight": types[2:],
        "bert.embeddings.position_embeddings.weight": places[:-1],
        "bert.embeddings.visual_position_embeddings.weight": places[-1:].expand(len(places) - 1, -1),
        **{
            f"bert.embeddings.visual_projection.{n}": t
            for n, t in made.embedders["image"].projection.state_dict().items()
        },
        **{f"bert.pooler.{n}": t for n, t in made.backbone.pooler.state_dict().items()},
    }
    head = made.objective("match").head.state_dict()
    named = {f"visual_{name}" if name.startswith("bert.") else name: tensor for name, tensor in bert.items()}
    theirs.load_state_dict(named | {f"cls.seq_relationship.{name}": tensor for name, tensor in head.items()})
    return theirs


def asked_of(theirs, made, some, visual_type):
    """The same rows, as their documentation says to make them."""
    first, end = made.backbone.start_id, made.backbone.end_id
    ids, types = [], []
    for a, b in ((made.backbone.encode_text(e.inputs[name]) for name in ("caption", "second")) for e in some):
        ids.append(torch.tensor([first, *a, end, *b, end]))
        types.append(torch.tensor([0] * (len(a) + 2) + [1] * (len(b) + 1)))
    text = {
        "input_ids": pad_sequence(ids, True),
        "token_type_ids": pad_sequence(types, True),
        "attention_mask": pad_sequence([torch.ones_like(each) for each in ids], True),
    }
    counts = [len(e.inputs["image"].features) for e in some]
    features = torch.zeros(len(some), max(counts), D)
    for row, example in zip(features, some, strict=True):
        row[: len(example.inputs["image"].features)] = torch.from_numpy(example.inputs["image"].features)
    mask = torch.arange(max(counts)) < torch.tensor(counts).unsqueeze(1)
    return text, theirs(
        **text,
        visual_embeds=features,
        visual_attention_mask=mask.long(),
        visual_token_type_ids=torch.full(mask.shape, visual_type),
    )


@pytest.mark.parametrize("visual_type", [0, 1])
@torch.no_grad()
def test_equal_to_transformers(visual_type):
    made, some = composed(objectives={"match": SentenceImage()}, visual_type=visual_type), examples()
    text, theirs = asked_of(of_transformers(made), made, some, visual_type)
    batch = Collator(made, made.inputs, ())(some)
    slots = made.prefix(batch).slots
    states = made.backbone.encode(slots).last
    words = [made.backbone.logits(row)[real] for row, real in zip(states, slots.layout.real, strict=True)]
    for own, other, attended, example in zip(
        words, theirs.prediction_logits, text["attention_mask"].bool(), some, strict=True
    ):
        count = len(example.inputs["image"].features)
        same(own, torch.cat([other[: len(attended)][attended], other[len(attended) : len(attended) + count]]))
    same(made.objective("match").head(made.backbone.pooled(states)), theirs.seq_relationship_logits)


def test_begins_as_berts_first_rows():
    torch.manual_seed(0)
    made = compose(
        VisualBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
        {"image": regions()},
        Masked(),
        texts=[WORDS] * 3,
    )
    types = made.backbone.model.bert.embeddings.token_type_embeddings.weight
    places = made.backbone.positions.weight
    assert torch.equal(types[2:], types[:2]) and torch.equal(places[-1], places[0])


# --- writing --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", ["early", "late"])
@torch.no_grad()
def test_packed_learning_and_cached_writing_are_the_naive_ones(fuse):
    """Regions take no positions: what is written goes on behind the words."""
    made, some = composed(fuse=fuse), examples()
    batch = Collator(made, made.inputs)(some)
    prefix = made.prefix(batch)
    words = (prefix.slots.layout.real & (prefix.slots.positions >= 0)).sum(1)
    assert prefix.free.squeeze(1).tolist() == words.tolist()
    reencoded.learns_and_writes_alike(made, some)


# --- mentions, pictures, what is refused ----------------------------------------------------------------------------


@torch.no_grad()
def test_regions_get_the_mean_position_of_the_words_that_mean_them():
    made = composed(inputs={"caption": Text(max_tokens=4)}, mentions=("caption",), first_object=1)
    own = replace(examples()[1], inputs={"caption": "a red cat and two dogs", "image": record("p", 3)})
    mentions = All(((2, 9, (0,)), (0, 1, (0, 1)), (14, 22, (1,))))  # the last is cut off
    told = replace(own, inputs=own.inputs | {"caption_mentions": mentions})
    plain, aligned = (made.prefix(Collator(made, made.inputs, ())([each])).slots for each in (own, told))
    spans = made.embedders["caption"].describe(own)["spans"][:4]
    added = aligned.states - plain.states
    table = made.backbone.positions.weight

    def of(*letters):
        tokens = [n for n, (start, stop) in enumerate(spans) for first, end in letters if start < end and stop > first]
        return torch.stack([table[1 + token] for token in tokens]).mean(0)  # [CLS] stands in front

    regions_of = added[0][aligned.of("image")[0]]
    assert torch.allclose(regions_of[1], of((2, 9), (0, 1)), atol=1e-6)
    assert torch.allclose(regions_of[2], of((0, 1)), atol=1e-6)
    assert not regions_of[0].any() and not added[0][~aligned.of("image")[0]].any()


def test_two_pictures_have_a_type_each():
    made = composed(inputs={"caption": Text()})
    pair = replace(examples()[0], inputs={"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    slots = made.prefix(Collator(made, made.inputs, ())([pair])).slots
    own = slots.of("image")[0]
    assert slots.types[0][own].tolist() == [2, 2, 3] and slots.positions[0][own].tolist() == [-1] * 3


def test_the_type_of_a_single_picture_is_its_own_whatever_stands_beside_it():
    made = composed(inputs={"caption": Text()}, visual_type=1)
    pair = Example("pair", {"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    single = Example("single", {"caption": "a cat", "image": All((record("a", 2),))})
    slots = made.prefix(Collator(made, made.inputs, ())([pair, single])).slots
    types = [row[own].tolist() for row, own in zip(slots.types, slots.of("image"), strict=True)]
    assert types == [[2, 2, 3], [3, 3]]


def test_mentions_that_no_input_is_named_for_are_told_before_learning():
    reader = composed(inputs={"caption": Text()}, mentions=("caption",)).embedders["image"].reader
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
    made = composed(inputs={"caption": Text()}, mentions=("caption",), max_regions=2)
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    told = replace(pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))})  # one that is not read
    plain, told = (made.prefix(Collator(made, made.inputs, ())([each])).slots.states for each in (pair, told))
    assert torch.equal(plain, told)


def test_six_coordinates():
    made = composed(inputs={"caption": Text()}, coordinates=True)
    assert made.embedders["image"].projection.in_features == D + 6
    boxes = torch.tensor([[[0.1, 0.2, 0.5, 0.9]]])
    assert torch.allclose(made.embedders["image"].where(boxes), torch.tensor([[[0.1, 0.2, 0.5, 0.9, 0.4, 0.7]]]))


def test_another_backbone_is_refused():
    with pytest.raises(PluginError, match='visualbert_regions needs the backbone "visualbert"'):
        compose(
            Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
            {"image": regions()},
            Masked(),
            texts=[WORDS] * 3,
        )


# --- published weights ----------------------------------------------------------------------------------------------


def sizes_of(made):
    config = made.backbone.model.config
    names_ = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    return {name: getattr(config, name) for name in names_}


KNOWN = ("red", "blue", "two")
PUBLISHED = [
    (VisualBertForPreTraining, {}, SentenceImage(), "cls.seq_relationship"),
    (VisualBertForQuestionAnswering, {"num_labels": 3}, AnswerClasses(), "cls"),
    (VisualBertForVisualReasoning, {"num_labels": 2}, TrueOrFalse(), "cls"),
    (VisualBertForMultipleChoice, {}, MultipleChoice(), "cls"),
]


@pytest.mark.parametrize("safetensors", [True, False])
@pytest.mark.parametrize(("cls", "more", "objective", "head"), PUBLISHED)
def test_what_was_published_is_taken_whole(cls, more, objective, head, safetensors, tmp_path):
    """By the names and in the layout of `uclanlp/visualbert-*`, on random weights."""
    made = composed(objectives={"own": objective}, labels={"answers": KNOWN})
    torch.manual_seed(1)
    theirs = cls(VisualBertConfig(**sizes_of(made), visual_embedding_dim=D, **more))
    if safetensors:
        theirs.save_pretrained(tmp_path)
    else:
        torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    weights = read_published(str(tmp_path))
    own = theirs.state_dict()
    backbone = made.backbone.published(weights)
    missing, unexpected = made.backbone.load_state_dict(backbone, strict=False)
    assert not unexpected and not [name for name in missing if "cls.predictions" not in name]
    types = made.backbone.model.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(types[2:], own["visual_bert.embeddings.visual_token_type_embeddings.weight"])
    assert torch.equal(
        made.backbone.positions.weight[-1], own["visual_bert.embeddings.visual_position_embeddings.weight"][0]
    )
    made.embedders["image"].load_state_dict(made.embedders["image"].published(weights))
    assert torch.equal(
        made.embedders["image"].projection.weight, own["visual_bert.embeddings.visual_projection.weight"]
    )
    taken = made.objective("own").published(weights)
    assert torch.equal(taken["head.weight"], own[f"{head}.weight"])
    assert torch.equal(taken["head.bias"], own[f"{head}.bias"])
    others = ("visual_bert.embeddings.", *["visual_bert.pooler."] * (not objective.pools))
    assert all(name.startswith(others) or "decoder" in name for name in weights.left_over)


def test_a_head_of_another_task_is_left_alone():
    made = composed(objectives={"own": TrueOrFalse()})
    assert made.objective("own").published({"cls.weight": torch.zeros(5, 32), "cls.bias": torch.zeros(5)}) == {}


@torch.no_grad()
def test_the_original_codes_names_are_known(oracle, tmp_path):
    """Those within its classes, and those of the files that it saves (`model_state_epoch_9.th`)."""
    made = backbone_of(oracle.sizes, oracle.late, fuse="late")
    torch.save({f"bert.{name}": tensor for name, tensor in oracle.late.items()}, tmp_path / "best.th")
    own, saved = made.state_dict(), read_published(str(tmp_path))
    for weights in (oracle.late, saved):
        taken = made.published(weights)
        assert set(own) - set(taken) <= {"model.cls.predictions.decoder.weight", "model.cls.predictions.decoder.bias"}
        assert all(torch.equal(own[name], tensor) for name, tensor in taken.items())
    projection = regions(fields=("image",)).build(made).published(saved)
    assert torch.equal(projection["projection.weight"], oracle.late["bert.embeddings.projection.weight"])
    assert [*SentenceImage().build(made, {}).published(saved)] == ["head.weight", "head.bias"]
    assert all(name.startswith("bert.bert.embeddings.") or "decoder" in name for name in saved.left_over)


@pytest.mark.parametrize("front", ["", "bert."])
def test_heads_of_the_original_codes_files(front):
    made = composed(objectives={"own": TrueOrFalse(), "where": PhraseRegions(width=8)})
    truth, where = (made.objective(name) for name in ("own", "where"))
    head = {f"{front}classifier.{name}": torch.randn_like(t) for name, t in truth.head.state_dict().items()}
    parts = {f"{name}.{part}" for name in ("query", "key") for part in ("weight", "bias")}
    scores = {f"{front}flickr_attention.{name}": torch.randn_like(where.state_dict()[name]) for name in parts}
    assert torch.equal(truth.published(head)["head.weight"], head[f"{front}classifier.weight"])
    assert where.published(scores).keys() == parts
    assert truth.published({"cls.weight": torch.ones(2, 32), "cls.bias": torch.ones(())}) == {}


@pytest.mark.parametrize(
    ("name", "tensor", "told"),
    [
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(2, 48),
            r"'visual_bert.embeddings.visual_token_type_embeddings.weight' is \(2, 48\), and "
            r"'visual_bert.embeddings.token_type_embeddings.weight' \(2, 32\); both are tables of one width",
        ),
        (
            "embeddings.visual_position_embeddings.weight",
            torch.ones(32),
            r"is \(32,\), and 'visual_bert.embeddings.pos",
        ),
        ("embeddings.position_embeddings.weight", torch.ones(()), r"position_embeddings.weight' is \(\), and"),
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(0, 32),
            r"is \(0, 32\), and VisualBERT uses 2 of its rows",
        ),
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(2, 32, dtype=torch.int8),
            r"has numbers of another kind \(torch.int8\)",
        ),
    ],
)
def test_tables_that_do_not_go_together_are_named(name, tensor, told):
    made = composed()
    theirs = VisualBertForPreTraining(VisualBertConfig(**sizes_of(made), visual_embedding_dim=D)).state_dict()
    with pytest.raises(DataError, match=told):
        made.backbone.published(theirs | {f"visual_bert.{name}": tensor})


def test_published_weights_in_the_encoders_place_are_told_where_they_go(tmp_path):
    """They bring no tokenizer."""
    made = composed()
    VisualBertForPreTraining(VisualBertConfig(**sizes_of(made))).save_pretrained(tmp_path)
    with pytest.raises(DataError) as error:
        VisualBert(weights=str(tmp_path)).build()
    assert str(error.value) == (
        f"backbone.weights: '{tmp_path}' is a visual_bert checkpoint; a step starts from it (steps.NAME.start = "
        f'"weights:{tmp_path}"), and backbone.weights brings the words, such as "bert-base-uncased"'
    )


def test_berts_own_weights_begin_the_rows_of_regions():
    made = composed()
    bert = BertForMaskedLM(BertConfig(**sizes_of(made)))
    taken = made.backbone.published(bert.state_dict())
    types = bert.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(taken["model.bert.embeddings.token_type_embeddings.weight"], types[[0, 1, 0, 1]])
