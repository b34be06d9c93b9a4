"""VL-BERT's original files (`vl-bert-base-prec.model`): every part loads its weights, and the rest is listed."""

import pytest
import torch
from kit.refusals import refusal
from kit.vlbert import WORDS, D, build_model
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_objectives import MaskedRegions, MaskedWords
from mmgen_vlbert import VlBert, VlBertRegions

from mmgen.model import Objectives, compose
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.start_from_weights import select_tensors
from mmgen.storage.published_weights import read_published

pytestmark = pytest.mark.slow

WIDE, LAYERS, CLASSES = 32, 2, 5
LEFT_OVER = ["relationsip_head.caption_image_relationship.weight", "image_feature_extractor.backbone.conv1.weight"]
RECIPE = """
name = "toy"
[backbone]
type = "vlbert"
[inputs.caption]
type = "text"
[inputs.image]
type = "vlbert_regions"
features = "regions.h5"
[generator]
type = "masked"
[objectives.words]
type = "masked_words"
[objectives.regions]
type = "masked_regions"
[steps.pre]
inputs = ["caption", "image"]
train = ["image", "backbone"]
objectives = ["words", "regions"]
evaluate = false
start = "weights:a.model"
[data]
type = "scenes"
"""


@pytest.fixture
def model():
    classes = tuple("abcd")  # the file also has the background class, before these
    return compose(
        VlBert(num_hidden_layers=LAYERS, hidden_size=WIDE, num_attention_heads=4, vocab_size=120),
        {"caption": Text(), "image": VlBertRegions(width=D, fingerprint={"extractor": "toy"}, classes=classes)},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"words": MaskedWords(), "regions": MaskedRegions()}),
    )


def shapes(words: int, positions: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the original code's parameters, inside VL-BERT (with "vlbert." in front) and outside."""
    dense = {"weight": (WIDE, WIDE), "bias": (WIDE,)}
    norm = {"weight": (WIDE,), "bias": (WIDE,)}
    layer = {f"attention.self.{name}": dense for name in ("query", "key", "value")}
    layer |= {"attention.output.dense": dense, "attention.output.LayerNorm": norm, "output.LayerNorm": norm}
    layer |= {"intermediate.dense": {"weight": (4 * WIDE, WIDE), "bias": (4 * WIDE,)}}
    layer |= {"output.dense": {"weight": (WIDE, 4 * WIDE), "bias": (WIDE,)}}
    inside = {f"encoder.layer.{n}.{name}": parts for n in range(LAYERS) for name, parts in layer.items()}
    inside |= {name: norm for name in ("embedding_LayerNorm", "visual_ln_text", "visual_ln_object")}
    inside |= {"mlm_head.predictions.transform.dense": dense, "mlm_head.predictions.transform.LayerNorm": norm}
    inside |= {"mvrc_head.transform.dense": dense}
    inside |= {"mvrc_head.region_cls_pred": {"weight": (CLASSES, WIDE), "bias": (CLASSES,)}}
    parameters = {f"vlbert.{name}.{part}": shape for name, parts in inside.items() for part, shape in parts.items()}
    tables = {"word": words, "position": positions, "token_type": 3}
    parameters |= {f"vlbert.{name}_embeddings.weight": (rows, WIDE) for name, rows in tables.items()}
    parameters |= {"vlbert.end_embedding.weight": (1, WIDE), "vlbert.mlm_head.predictions.bias": (words,)}
    rows = {"object_linguistic_embeddings": WIDE, "object_mask_word_embedding": WIDE}
    rows |= {"aux_text_visual_embedding": WIDE, "object_mask_visual_embedding": D}
    parameters |= {f"{name}.weight": (1, width) for name, width in rows.items()}
    parameters |= {"image_feature_extractor.obj_downsample.1.weight": (WIDE, 2048 + D)}
    parameters |= {"image_feature_extractor.obj_downsample.1.bias": (WIDE,)}
    return parameters | {f"vlbert.{LEFT_OVER[0]}": (2, WIDE), LEFT_OVER[1]: (4, 3, 7, 7)}


@pytest.mark.parametrize(("front", "inside"), [("module.", ""), ("", ""), ("module.", "_module.")])
def test_every_parameter_is_loaded_from_the_file(tmp_path, model, front, inside):
    """From files in half precision, of one or several GPUs, and of the code for VCR, which also has an optimiser."""
    embeddings = model.backbone.model.bert.embeddings
    torch.manual_seed(1)
    sizes = shapes(len(embeddings.word_embeddings.weight), len(embeddings.position_embeddings.weight))
    named = {name.replace("vlbert.", f"vlbert.{inside}"): torch.randn(shape).half() for name, shape in sizes.items()}
    tied = f"vlbert.{inside}mlm_head.predictions.decoder.weight"
    named[tied] = named[f"vlbert.{inside}word_embeddings.weight"]
    saved = {f"{front}{name}": tensor for name, tensor in named.items()}
    torch.save({"state_dict": saved, "optimizer": {"param_groups": [{"lr": 1e-7}]}}, tmp_path / "a.model")
    (tmp_path / "toy.toml").write_text(RECIPE)
    weights = read_published(str(tmp_path / "a.model"))
    loaded = select_tensors(load(tmp_path / "toy.toml", installed())[0].steps["pre"], model, weights)
    assert {name.removeprefix(f"vlbert.{inside}") for name in weights.left_over} == {*LEFT_OVER}
    generator = {f"generator.{name}" for name, _ in model.generator.named_parameters()}
    assert set(loaded) == {name for name, _ in model.named_parameters()} - generator
    theirs = {name.replace("_module.", ""): tensor.float() for name, tensor in named.items()}
    expected = {
        "backbone.model.bert.embeddings.token_type_embeddings.weight": theirs["vlbert.token_type_embeddings.weight"],
        "backbone.model.bert.encoder.layer.1.output.dense.weight": theirs["vlbert.encoder.layer.1.output.dense.weight"],
        "embedders.image.end": theirs["vlbert.end_embedding.weight"][0],
        "embedders.image.object_word": theirs["object_linguistic_embeddings.weight"][0],
        "embedders.image.word_norm.weight": theirs["vlbert.visual_ln_text.weight"],
        "embedders.image.region_norm.weight": theirs["vlbert.visual_ln_object.weight"],
        "embedders.image.hidden_word": theirs["object_mask_word_embedding.weight"][0],
        "embedders.image.hidden_look": theirs["object_mask_visual_embedding.weight"][0],
        "embedders.image.without_picture": theirs["aux_text_visual_embedding.weight"][0],
        "objectives.regions.head.classes.bias": theirs["vlbert.mvrc_head.region_cls_pred.bias"][1:],
    }
    for name, tensor in expected.items():
        assert torch.equal(loaded[name], tensor), name
    features = theirs["image_feature_extractor.obj_downsample.1.weight"]  # the geometry comes before the features
    assert torch.equal(
        loaded["embedders.image.projection.weight"], torch.cat([features[:, 2048:], features[:, :2048]], 1)
    )


@pytest.mark.parametrize("front", ["vlbert.", "module.vlbert."])
def test_published_weights_without_a_token_type_of_regions_are_refused(front):
    name = f"{front}token_type_embeddings.weight"
    backbone = build_model().backbone
    assert "model.bert.embeddings.token_type_embeddings.weight" in backbone.published({name: torch.ones(3, 32)})
    message = refusal(backbone.published, {name: torch.ones(2, 32)})
    assert message == (
        f"'{name}' has shape (2, 32), but VL-BERT needs 3 rows, the last for regions; the file is damaged"
    )


def test_plain_bert_leaves_the_token_type_of_regions_at_its_initial_value():
    backbone = build_model().backbone
    name = "bert.embeddings.token_type_embeddings.weight"
    ours, theirs = backbone.state_dict()[f"model.{name}"], torch.ones(2, 32)
    assert torch.equal(backbone.published({name: theirs})[f"model.{name}"], torch.cat([theirs, ours[2:]]))
