"""VisualBERT: equal to the original code on its weights, and to transformers' classes; late fusion; errors."""

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
from mmgen.storage.published_weights import read_published
from mmgen.tensors import All, Example, Segment, Targets

D = 20
WORDS = "what color is the ball . a red cat and two dogs on grass"


class TestVisualBert(mmgen.testing.BackboneSuite):
    def config(self):
        return VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def backbone(self):
        """With changed rows of regions, which are initialised with the words' first rows."""
        result = super().backbone()
        with torch.no_grad():
            result.positions.weight[-1].mul_(-1)
        return result


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
    """A tokenizer that is never called: the oracles' inputs are token ids."""

    cls_token_id, sep_token_id, mask_token_id, pad_token_id = 1, 2, 3, 0
    is_fast = True


@pytest.fixture(scope="module")
def oracle():
    folder = shared("oracles/visualbert")
    return SimpleNamespace(
        sizes=json.loads((folder / "config.json").read_text()), **_split(load_file(folder / "original.safetensors"))
    )


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
    bert = dict(names.as_bert(weights))
    pooler = {name: bert.pop(f"bert.pooler.dense.{name}") for name in ("weight", "bias")}
    missing, unexpected = backbone.model.load_state_dict(bert, strict=False)
    assert not unexpected and set(missing) <= {"cls.predictions.decoder.bias"}
    backbone.pooler.dense.load_state_dict(pooler)
    if backbone.fusion is not None:
        backbone.fusion.load_state_dict(names.fusion(weights))
    return backbone


def embedder_of(backbone, weights, **settings):
    embedder = regions(fields=("image",), mentions=("question",), **settings).build(backbone).eval()
    embedder.projection.load_state_dict(names.projection(weights))
    return embedder


def row_of(backbone, embedder, inputs, pairs=None, picture=None):
    """A row as in the original code, with the text's padding between text and regions. -> slots (B, P)."""
    text = Segment(backbone.embed(inputs["ids"]), inputs["text_mask"].bool(), inputs["types"])
    collated = {"features": inputs["features"], "mask": inputs["region_mask"].bool()}
    collated |= {} if picture is None else {"picture": picture}
    slots, _ = lay_out([("question", text), ("image", embedder(**collated))])
    added = embedder.add(slots, collated | ({} if pairs is None else {"pairs": pairs}), "image")
    return slots if added is None else replace(slots, states=slots.states + added)


def pairs_of(alignment):
    """Tokens of every region (B, R, A), padded with -1 -> pairs (B, R x A, 3)."""
    pairs = [
        [(region, 0, int(token)) for region, tokens in enumerate(row) for token in tokens if token >= 0]
        for row in alignment
    ]
    most = max(map(len, pairs))
    return torch.tensor([[*row, *[(-1, -1, -1)] * (most - len(row))] for row in pairs])


def inside(inputs):
    return torch.cat([inputs["text_mask"], inputs["region_mask"]], 1).bool()


def same(ours, theirs, mask=...):
    assert torch.allclose(ours[mask], theirs[mask], atol=1e-5 * max(1.0, theirs[mask].abs().max().item())), (
        (ours - theirs)[mask].abs().max()
    )


@torch.no_grad()
def test_pretraining_equals_the_original_code(oracle):
    inputs, weights = oracle.inputs, oracle.pretraining
    backbone = backbone_of(oracle.sizes, weights)
    embedder, mask = embedder_of(backbone, weights), inside(inputs)
    matching = torch.nn.functional.linear
    head = (weights["cls.seq_relationship.weight"], weights["cls.seq_relationship.bias"])
    for pairs, picture, words, match in (
        (None, None, "words", "match"),
        (pairs_of(inputs["alignment"]), None, "words_aligned", "match_aligned"),
        (None, inputs["two_pictures"], "words_two_pictures", None),
    ):
        states = backbone.encode(row_of(backbone, embedder, inputs, pairs, picture)).last
        same(backbone.logits(states), oracle.out[words], mask)
        if match:
            same(matching(backbone.pooled(states), *head), oracle.out[match])
        if words == "words":
            same(states, oracle.out["states"], mask)
            same(backbone.pooled(states), oracle.out["pooled"])


@torch.no_grad()
def test_late_fusion_equals_the_original_code(oracle):
    weights = oracle.late
    backbone = backbone_of(oracle.sizes, weights, fuse="late")
    states = backbone.encode(row_of(backbone, embedder_of(backbone, weights), oracle.inputs)).last
    same(backbone.logits(states), oracle.out["words_late"], inside(oracle.inputs))
    head = (weights["cls.seq_relationship.weight"], weights["cls.seq_relationship.bias"])
    same(torch.nn.functional.linear(backbone.pooled(states), *head), oracle.out["match_late"])


@torch.no_grad()
def test_answers_equal_the_original_code(oracle):
    inputs, weights = oracle.inputs, oracle.vqa
    backbone = backbone_of(oracle.sizes, weights | head_of(oracle.pretraining))
    states = backbone.encode(row_of(backbone, embedder_of(backbone, weights), inputs)).last
    known = tuple(map(str, range(inputs["answers"].shape[1])))
    objective = AnswerClasses().build(backbone, {"answers": known}).eval()
    objective.head.load_state_dict({name: weights[f"classifier.{name}"] for name in ("weight", "bias")})
    mask = inputs["text_mask"][:, 1:].bool()  # the last word is [SEP]; the answer is read from the word before it
    model = SimpleNamespace(encode=lambda _: EncodedInputs(states, {"question": states[:, : inputs["ids"].shape[1]]}))
    batch = SimpleNamespace(inputs={"question": {"mask": mask}})
    same(objective.logits(model, batch), oracle.out["answers"].squeeze(1))
    loss = objective(model, batch, Targets({"loss": 3}, {"answers": inputs["answers"]})).sums["loss"] / 3
    assert float(loss) == pytest.approx(float(oracle.out["answers_loss"]), rel=1e-5)


def head_of(weights):
    """An unused masked-LM head, for weights without one."""
    return {name: tensor for name, tensor in weights.items() if name.startswith("cls.predictions.")}


# --- transformers' class --------------------------------------------------------------------------------------------


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
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model.eval()


def examples():
    """Of 2, 3 and 5 regions."""
    pairs = [("a red cat", "two dogs on grass"), ("the ball", "what color is the ball"), ("grass", "a cat")]
    return [
        Example(f"e{n}", {"caption": a, "second": b, "image": record(f"p{n}", (3, 5, 2)[n], n)}, (WORDS[:20],))
        for n, (a, b) in enumerate(pairs)
    ]


def of_transformers(model):
    """transformers' class with the model's weights."""
    config = model.backbone.model.config
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
    bert = model.backbone.model.state_dict()
    types = bert.pop("bert.embeddings.token_type_embeddings.weight")
    places = bert.pop("bert.embeddings.position_embeddings.weight")
    bert |= {
        "bert.embeddings.token_type_embeddings.weight": types[:2],
        "bert.embeddings.visual_token_type_embeddings.weight": types[2:],
        "bert.embeddings.position_embeddings.weight": places[:-1],
        "bert.embeddings.visual_position_embeddings.weight": places[-1:].expand(len(places) - 1, -1),
        **{
            f"bert.embeddings.visual_projection.{n}": t
            for n, t in model.embedders["image"].projection.state_dict().items()
        },
        **{f"bert.pooler.{n}": t for n, t in model.backbone.pooler.state_dict().items()},
    }
    head = model.objective("match").head.state_dict()
    named = {f"visual_{name}" if name.startswith("bert.") else name: tensor for name, tensor in bert.items()}
    theirs.load_state_dict(named | {f"cls.seq_relationship.{name}": tensor for name, tensor in head.items()})
    return theirs


def transformers_outputs(theirs, model, some, visual_type):
    """The same rows, built as transformers' documentation says."""
    first, end = model.backbone.start_id, model.backbone.end_id
    ids, types = [], []
    for a, b in ((model.backbone.encode_text(e.inputs[name]) for name in ("caption", "second")) for e in some):
        ids.append(torch.tensor([first, *a, end, *b, end]))
        types.append(torch.tensor([0] * (len(a) + 2) + [1] * (len(b) + 1)))
    text = {
        "input_ids": pad_sequence(ids, True),
        "token_type_ids": pad_sequence(types, True),
        "attention_mask": pad_sequence([torch.ones_like(row) for row in ids], True),
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
    model, some = build_model(objectives={"match": SentenceImage()}, visual_type=visual_type), examples()
    text, theirs = transformers_outputs(of_transformers(model), model, some, visual_type)
    batch = Collator(model, model.inputs, ())(some)
    slots = model.prefix(batch).slots
    states = model.backbone.encode(slots).last
    words = [model.backbone.logits(row)[real] for row, real in zip(states, slots.layout.real, strict=True)]
    for logits, theirs_logits, attended, example in zip(
        words, theirs.prediction_logits, text["attention_mask"].bool(), some, strict=True
    ):
        count = len(example.inputs["image"].features)
        same(
            logits,
            torch.cat([theirs_logits[: len(attended)][attended], theirs_logits[len(attended) : len(attended) + count]]),
        )
    same(model.objective("match").head(model.backbone.pooled(states)), theirs.seq_relationship_logits)


def test_new_rows_are_initialised_with_berts_first_rows():
    torch.manual_seed(0)
    model = compose(
        VisualBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
        {"image": regions()},
        Masked(),
        texts=[WORDS] * 3,
    )
    types = model.backbone.model.bert.embeddings.token_type_embeddings.weight
    places = model.backbone.positions.weight
    assert torch.equal(types[2:], types[:2]) and torch.equal(places[-1], places[0])


# --- generation -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", ["early", "late"])
@torch.no_grad()
def test_packed_training_and_cached_generation_equal_the_naive_ones(fuse):
    """Regions take no positions: generated tokens follow the words."""
    model, some = build_model(fuse=fuse), examples()
    batch = Collator(model, model.inputs)(some)
    prefix = model.prefix(batch)
    words = (prefix.slots.layout.real & (prefix.slots.positions >= 0)).sum(1)
    assert prefix.free.squeeze(1).tolist() == words.tolist()
    reencoded.assert_matches_reencoding(model, some)


# --- mentions, pictures, errors -------------------------------------------------------------------------------------


@torch.no_grad()
def test_regions_get_the_mean_position_of_the_words_that_mention_them():
    model = build_model(inputs={"caption": Text(max_tokens=4)}, mentions=("caption",), first_object=1)
    plain_example = replace(examples()[1], inputs={"caption": "a red cat and two dogs", "image": record("p", 3)})
    mentions = All(((2, 9, (0,)), (0, 1, (0, 1)), (14, 22, (1,))))  # the last mention is truncated
    with_mentions = replace(plain_example, inputs=plain_example.inputs | {"caption_mentions": mentions})
    plain, aligned = (
        model.prefix(Collator(model, model.inputs, ())([example])).slots for example in (plain_example, with_mentions)
    )
    spans = model.embedders["caption"].describe(plain_example)["spans"][:4]
    added = aligned.states - plain.states
    table = model.backbone.positions.weight

    def of(*letters):
        tokens = [n for n, (start, stop) in enumerate(spans) for first, end in letters if start < end and stop > first]
        return torch.stack([table[1 + token] for token in tokens]).mean(0)  # after [CLS]

    regions_of = added[0][aligned.of("image")[0]]
    assert torch.allclose(regions_of[1], of((2, 9), (0, 1)), atol=1e-6)
    assert torch.allclose(regions_of[2], of((0, 1)), atol=1e-6)
    assert not regions_of[0].any() and not added[0][~aligned.of("image")[0]].any()


def test_two_pictures_have_a_type_each():
    model = build_model(inputs={"caption": Text()})
    pair = replace(examples()[0], inputs={"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    slots = model.prefix(Collator(model, model.inputs, ())([pair])).slots
    image_slots = slots.of("image")[0]
    assert slots.types[0][image_slots].tolist() == [2, 2, 3] and slots.positions[0][image_slots].tolist() == [-1] * 3


def test_the_type_of_a_single_picture_does_not_depend_on_the_batch():
    model = build_model(inputs={"caption": Text()}, visual_type=1)
    pair = Example("pair", {"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    single = Example("single", {"caption": "a cat", "image": All((record("a", 2),))})
    slots = model.prefix(Collator(model, model.inputs, ())([pair, single])).slots
    types = [row[image_slots].tolist() for row, image_slots in zip(slots.types, slots.of("image"), strict=True)]
    assert types == [[2, 2, 3], [3, 3]]


def test_mentions_without_an_input_are_refused_before_training():
    reader = build_model(inputs={"caption": Text()}, mentions=("caption",)).embedders["image"].reader
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
    model = build_model(inputs={"caption": Text()}, mentions=("caption",), max_regions=2)
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    with_mentions = replace(
        pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))}
    )  # of an unread region
    plain, with_mentions = (
        model.prefix(Collator(model, model.inputs, ())([example])).slots.states for example in (pair, with_mentions)
    )
    assert torch.equal(plain, with_mentions)


def test_six_coordinates():
    model = build_model(inputs={"caption": Text()}, coordinates=True)
    assert model.embedders["image"].projection.in_features == D + 6
    boxes = torch.tensor([[[0.1, 0.2, 0.5, 0.9]]])
    assert torch.allclose(model.embedders["image"].where(boxes), torch.tensor([[[0.1, 0.2, 0.5, 0.9, 0.4, 0.7]]]))


def test_other_backbones_are_refused():
    with pytest.raises(PluginError, match='visualbert_regions needs the backbone "visualbert"'):
        compose(
            Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4),
            {"image": regions()},
            Masked(),
            texts=[WORDS] * 3,
        )


# --- published weights ----------------------------------------------------------------------------------------------


def sizes_of(model):
    config = model.backbone.model.config
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
def test_all_published_weights_are_loaded(cls, more, objective, head, safetensors, tmp_path):
    """With the names and the layout of `uclanlp/visualbert-*`, on random weights."""
    model = build_model(objectives={"own": objective}, vocabularies={"answers": KNOWN})
    torch.manual_seed(1)
    theirs = cls(VisualBertConfig(**sizes_of(model), visual_embedding_dim=D, **more))
    if safetensors:
        theirs.save_pretrained(tmp_path)
    else:
        torch.save(theirs.state_dict(), tmp_path / "pytorch_model.bin")
    weights = read_published(str(tmp_path))
    state = theirs.state_dict()
    backbone = model.backbone.published(weights)
    missing, unexpected = model.backbone.load_state_dict(backbone, strict=False)
    assert not unexpected and not [name for name in missing if "cls.predictions" not in name]
    types = model.backbone.model.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(types[2:], state["visual_bert.embeddings.visual_token_type_embeddings.weight"])
    assert torch.equal(
        model.backbone.positions.weight[-1], state["visual_bert.embeddings.visual_position_embeddings.weight"][0]
    )
    model.embedders["image"].load_state_dict(model.embedders["image"].published(weights))
    assert torch.equal(
        model.embedders["image"].projection.weight, state["visual_bert.embeddings.visual_projection.weight"]
    )
    taken = model.objective("own").published(weights)
    assert torch.equal(taken["head.weight"], state[f"{head}.weight"])
    assert torch.equal(taken["head.bias"], state[f"{head}.bias"])
    unused = ("visual_bert.embeddings.", *["visual_bert.pooler."] * (not objective.pools))
    assert all(name.startswith(unused) or "decoder" in name for name in weights.left_over)


def test_a_head_of_another_task_is_ignored():
    model = build_model(objectives={"own": TrueOrFalse()})
    assert model.objective("own").published({"cls.weight": torch.zeros(5, 32), "cls.bias": torch.zeros(5)}) == {}


@torch.no_grad()
def test_the_original_codes_names_are_known(oracle, tmp_path):
    """The names within its classes, and those in its files (`model_state_epoch_9.th`)."""
    backbone = backbone_of(oracle.sizes, oracle.late, fuse="late")
    torch.save({f"bert.{name}": tensor for name, tensor in oracle.late.items()}, tmp_path / "best.th")
    state, saved = backbone.state_dict(), read_published(str(tmp_path))
    for weights in (oracle.late, saved):
        taken = backbone.published(weights)
        assert set(state) - set(taken) <= {"model.cls.predictions.decoder.weight", "model.cls.predictions.decoder.bias"}
        assert all(torch.equal(state[name], tensor) for name, tensor in taken.items())
    projection = regions(fields=("image",)).build(backbone).published(saved)
    assert torch.equal(projection["projection.weight"], oracle.late["bert.embeddings.projection.weight"])
    assert [*SentenceImage().build(backbone, {}).published(saved)] == ["head.weight", "head.bias"]
    assert all(name.startswith("bert.bert.embeddings.") or "decoder" in name for name in saved.left_over)


@pytest.mark.parametrize("front", ["", "bert."])
def test_heads_of_the_original_codes_files(front):
    model = build_model(objectives={"own": TrueOrFalse(), "where": PhraseRegions(width=8)})
    truth, where = (model.objective(name) for name in ("own", "where"))
    head = {f"{front}classifier.{name}": torch.randn_like(t) for name, t in truth.head.state_dict().items()}
    parts = {f"{name}.{part}" for name in ("query", "key") for part in ("weight", "bias")}
    scores = {f"{front}flickr_attention.{name}": torch.randn_like(where.state_dict()[name]) for name in parts}
    assert torch.equal(truth.published(head)["head.weight"], head[f"{front}classifier.weight"])
    assert where.published(scores).keys() == parts
    assert truth.published({"cls.weight": torch.ones(2, 32), "cls.bias": torch.ones(())}) == {}


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(2, 48),
            r"'visual_bert.embeddings.visual_token_type_embeddings.weight' has shape \(2, 48\) and "
            r"'visual_bert.embeddings.token_type_embeddings.weight' has shape \(2, 32\); both must be tables of equal",
        ),
        (
            "embeddings.visual_position_embeddings.weight",
            torch.ones(32),
            r"has shape \(32,\) and 'visual_bert.embeddings.pos",
        ),
        ("embeddings.position_embeddings.weight", torch.ones(()), r"position_embeddings.weight' has shape \(\) and"),
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(0, 32),
            r"has shape \(0, 32\), but VisualBERT needs 2 rows",
        ),
        (
            "embeddings.visual_token_type_embeddings.weight",
            torch.ones(2, 32, dtype=torch.int8),
            r"is quantised \(torch.int8\) without its scales",
        ),
    ],
)
def test_mismatched_tables_are_refused(name, tensor, message):
    model = build_model()
    theirs = VisualBertForPreTraining(VisualBertConfig(**sizes_of(model), visual_embedding_dim=D)).state_dict()
    with pytest.raises(DataError, match=message):
        model.backbone.published(theirs | {f"visual_bert.{name}": tensor})


def test_published_weights_are_refused_as_backbone_weights(tmp_path):
    """They have no tokenizer."""
    model = build_model()
    VisualBertForPreTraining(VisualBertConfig(**sizes_of(model))).save_pretrained(tmp_path)
    with pytest.raises(DataError) as error:
        VisualBert(weights=str(tmp_path)).build()
    assert str(error.value) == (
        f"backbone.weights: '{tmp_path}' is a visual_bert checkpoint; start a step from it (steps.NAME.start = "
        f'"weights:{tmp_path}"), and set backbone.weights to a checkpoint with a tokenizer, such as '
        '"bert-base-uncased"'
    )


def test_plain_bert_initialises_the_rows_of_regions():
    model = build_model()
    bert = BertForMaskedLM(BertConfig(**sizes_of(model)))
    taken = model.backbone.published(bert.state_dict())
    types = bert.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(taken["model.bert.embeddings.token_type_embeddings.weight"], types[[0, 1, 0, 1]])
