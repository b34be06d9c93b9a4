"""Published weights of VisualBERT: every name is known, and wrong tables are refused."""

import pytest
import torch
from kit.visualbert import D, backbone_of, build_model, regions
from mmgen_objectives import SentenceImage
from mmgen_objectives.tasks import AnswerClasses, MultipleChoice, PhraseRegions, TrueOrFalse
from transformers import (
    BertConfig,
    BertForMaskedLM,
    VisualBertConfig,
    VisualBertForMultipleChoice,
    VisualBertForPreTraining,
    VisualBertForQuestionAnswering,
    VisualBertForVisualReasoning,
)

from mmgen.errors import DataError
from mmgen.storage.published_weights import read_published

pytestmark = pytest.mark.slow


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
    places = state["visual_bert.embeddings.visual_position_embeddings.weight"]
    assert torch.equal(model.backbone.positions.weight[-1], places[0])
    embedder = model.embedders["image"]
    embedder.load_state_dict(embedder.published(weights))
    assert torch.equal(embedder.projection.weight, state["visual_bert.embeddings.visual_projection.weight"])
    taken = model.objective("own").published(weights)
    assert torch.equal(taken["head.weight"], state[f"{head}.weight"])
    assert torch.equal(taken["head.bias"], state[f"{head}.bias"])
    unused = ("visual_bert.embeddings.", *["visual_bert.pooler."] * (not objective.pools))
    assert all(name.startswith(unused) or "decoder" in name for name in weights.left_over)


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


def test_plain_bert_initialises_the_rows_of_regions():
    model = build_model()
    bert = BertForMaskedLM(BertConfig(**sizes_of(model)))
    taken = model.backbone.published(bert.state_dict())
    types = bert.bert.embeddings.token_type_embeddings.weight
    assert torch.equal(taken["model.bert.embeddings.token_type_embeddings.weight"], types[[0, 1, 0, 1]])
