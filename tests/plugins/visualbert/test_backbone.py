"""VisualBERT: equal to the original code on its weights, and to transformers' classes; late fusion; errors."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from kit import reencoded
from kit.visualbert import D, backbone_of, build_model, examples, regions
from mmgen_objectives import SentenceImage
from mmgen_objectives.tasks import AnswerClasses
from mmgen_visualbert import VisualBert, published_weights
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    VisualBertConfig,
    VisualBertForPreTraining,
)

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.sequence import EncodedInputs, lay_out
from mmgen.tensors import Segment, Targets


class TestVisualBert(mmgen.testing.BackboneSuite):
    def config(self):
        return VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def backbone(self):
        """With changed rows of regions, which are initialised with the words' first rows."""
        result = super().backbone()
        with torch.no_grad():
            result.positions.weight[-1].mul_(-1)
        return result


@pytest.mark.slow
class TestLateFusion(TestVisualBert):
    def config(self):
        return VisualBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, fuse="late")


def embedder_of(backbone, weights, **settings):
    embedder = regions(fields=("image",), mentions=("question",), **settings).build(backbone).eval()
    embedder.projection.load_state_dict(published_weights.projection(weights))
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


@pytest.mark.slow
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
