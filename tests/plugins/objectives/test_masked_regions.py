"""Masked-region classification: hidden features reach no state, and the detector's classes are predicted."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.objectives import WORDS, model_of
from kit.oracles import ORACLES
from kit.refusals import refusal
from mmgen_inputs import Regions, Text
from mmgen_objectives import MaskedRegions, MaskedWords
from mmgen_vlbert import VlBert, VlBertRegions
from safetensors.torch import load_file

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.features.classes import Classes
from mmgen.parts import Record
from mmgen.tensors import Hiding

D = 12
NAMES = ("dog", "cat", "ball", "tree", "car")
BACKBONE = VlBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.0)
KINDS = {"vlbert": VlBertRegions, "plain": Regions}


def record(name, count, seed=0):
    """Regions with classes; the second region has no known class."""
    rng = np.random.default_rng(seed)
    first = rng.uniform(0, 0.5, (count, 2))
    boxes = np.concatenate([first, first + 0.4], 1).astype(np.float32)
    classes = Classes.surest(NAMES, rng.dirichlet(np.full(len(NAMES), 0.1), count), 3)
    classes.ids[1], classes.probabilities[1] = -1, 0
    return Record(name, rng.standard_normal((count, D)).astype(np.float32), boxes, classes=classes)


def regions(cls=VlBertRegions, **settings):
    return cls(width=D, fingerprint={"extractor": "toy"}, classes=NAMES, **settings)


def examples(count=6):
    captions = ("a red cat", "the ball", "two dogs on grass")
    return [
        Example(f"e{n}", {"caption": captions[n % 3], "image": record(f"p{n}", 3 + n % 3, n)}, ("what is it",))
        for n in range(count)
    ]


class TestMaskedRegions(mmgen.testing.ObjectiveSuite):
    def config(self):
        return MaskedRegions(mask_probability=0.6)

    def backbone_config(self):
        return BACKBONE

    def inputs(self):
        return {"caption": Text(), "image": regions(dropout=0.0)}

    def examples(self):
        return examples()


class TestMaskedPlainRegions(TestMaskedRegions):
    def inputs(self):
        return {"caption": Text(), "image": regions(Regions)}


def compose_model(kind="vlbert", rate=0.5, **settings):
    dropout = {"dropout": 0.0} if kind == "vlbert" else {}
    inputs = {"caption": Text(), "image": regions(KINDS[kind], **dropout, **settings)}
    objectives = {"regions": MaskedRegions(mask_probability=rate), "words": MaskedWords(mlm_probability=0.5)}
    return model_of(inputs, objectives, backbone=VlBert)


def hidden(reader, example, hiding, seed=0):
    return reader.hide(reader.read(example), random.Random(seed), hiding)


@pytest.mark.parametrize("kind", KINDS)
def test_a_share_of_the_regions_is_predicted_and_most_of_those_are_hidden(kind):
    reader = compose_model(kind, max_regions=5000).embedders["image"].reader
    example = replace(examples()[0], inputs={"image": record("p", 5000)})
    before = reader.collate([reader.read(example)])["features"].clone()
    item, labels = hidden(reader, example, Hiding(0.15, (0.9, 0.0)))
    predicted = labels[:, 0] != -100
    assert predicted.float().mean() == pytest.approx(0.15, abs=0.02)
    features = reader.collate([item])["features"][0]
    gone = (features == 0).all(1)
    first = int(kind == "vlbert")
    assert gone[predicted[: len(gone)]].float().mean() == pytest.approx(0.9, abs=0.03)
    assert torch.equal(features[first:][~gone[first:]], before[0, first:][~gone[first:]])
    assert not gone[~predicted[: len(gone)]].any()
    assert torch.equal(reader.collate([reader.read(example)])["features"], before)  # the item is not changed


def test_labels_are_the_detectors_distributions_and_the_whole_picture_is_never_one():
    example = examples()[0]
    item, labels = hidden(compose_model().embedders["image"].reader, example, Hiding(1.0, (1.0, 0.0)))
    classes = example.inputs["image"].classes
    assert labels.shape == (3 + 2, len(NAMES))  # the whole picture in front, the end behind
    assert (labels[[0, 2, 4]] == -100).all()  # and the region without a known class
    for slot, region in ((1, 0), (3, 2)):
        expected = np.zeros(len(NAMES))
        expected[classes.ids[region]] = classes.probabilities[region]
        assert np.allclose(labels[slot], expected / expected.sum(), atol=1e-6)
    assert item[0][0].hidden.tolist() == [False, True, False, True]


@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_whole_picture_is_the_mean_of_visible_regions(whole_image):
    reader, example = compose_model(whole_image=whole_image).embedders["image"].reader, examples()[2]
    item, labels = hidden(reader, example, Hiding(0.5, (1.0, 0.0)), seed=1)
    ((regions,), _), marks = item, item[0][0].hidden
    assert marks.any() and not marks.all() and not marks[0] and (labels[0] == -100).all()
    assert np.array_equal(regions.features[0], regions.features[1:][~marks[1:]].mean(0))


@torch.no_grad()
@pytest.mark.parametrize("kind", KINDS)
def test_features_of_hidden_regions_reach_nothing(kind):
    """Changed features of hidden regions change no slot's state at all; those of visible regions do."""
    model, hiding = compose_model(kind), Hiding(0.6, (1.0, 0.0))
    reader, example = model.embedders["image"].reader, examples()[2]
    item, _ = hidden(reader, example, hiding)
    gone = (reader.collate([item])["features"][0] == 0).all(1).numpy()[int(kind == "vlbert") :]
    assert gone.any() and not gone.all()

    def states(which):
        picture = example.inputs["image"]
        features = np.where(which[:, None], picture.features[::-1] + 7, picture.features)
        changed = replace(example, inputs=example.inputs | {"image": replace(picture, features=features)})
        item, _ = hidden(reader, changed, hiding)
        batch = Collator(model, model.inputs, ())([changed])
        prefix = model.prefix(replace(batch, inputs={**batch.inputs, "image": reader.collate([item])}))
        return torch.cat([prefix.slots.states[0], *([prefix.term] if prefix.term is not None else [])])

    plain = states(np.zeros_like(gone))
    assert (states(gone) - plain).abs().max() == 0
    assert (states(~gone) - plain).abs().max() > 1e-3


@torch.no_grad()
def test_a_hidden_region_has_its_own_word_and_features_and_the_same_box():
    model, example = compose_model(), examples()[0]
    embedder = model.embedders["image"]
    item, _ = hidden(embedder.reader, example, Hiding(1.0, (1.0, 0.0)))
    collated = embedder.reader.collate([item])
    look = embedder.hidden_look.expand(1, 1, -1)
    place = torch.from_numpy(example.inputs["image"].boxes[:1]).unsqueeze(0)
    expected = embedder.hidden_word + embedder.region_norm(embedder.looks(look, place))
    assert torch.allclose(embedder(**collated).states[0, 1], expected[0, 0], atol=1e-6)


@torch.no_grad()
def test_the_loss_is_the_soft_cross_entropy_and_counts_regions():
    model, some = compose_model(), examples()
    batch = Collator(model, model.inputs, ["regions", "words"], RngKey(0, "s"))(some, [0] * len(some))
    loss = model(batch)
    states = model.encode(batch).inputs["image"]
    labels = batch.targets["regions"].labels
    total = 0.0
    for slot, classes in zip(labels["predicted"].nonzero(), labels["classes"], strict=True):
        log_probabilities = model.objective("regions").head(states[tuple(slot)]).log_softmax(-1)
        total -= float((classes * log_probabilities).sum())
    assert loss.counts["regions.loss"] == len(labels["classes"]) > 3 and loss.counts["words.loss"] > 3
    assert float(loss.sums["regions.loss"]) == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("background", [0, 1])
def test_the_original_codes_head_on_its_own_states(background):
    """Its first class is the background, which is left out for a head with one class less."""
    tensors = load_file(ORACLES / "vlbert" / "original.safetensors")
    names = tuple("abcdefghi"[background:])
    backbone = VlBert(num_hidden_layers=1, hidden_size=48, num_attention_heads=4, vocab_size=90).build(
        texts=[WORDS] * 3
    )
    objective = MaskedRegions().build(backbone, {"image.classes": names})
    named = {f"module.vlbert.{name[6:]}": tensor for name, tensor in tensors.items() if name.startswith("model.mvrc")}
    objective.load_state_dict(objective.published(named))
    mask, expected = tensors["in.object_mask"].bool(), tensors["out.mvrc"]
    ours = objective.head(tensors["out.object"])[mask]
    assert torch.allclose(ours, expected[mask][:, background:], atol=1e-5 * expected[mask].abs().max().item())


def test_features_without_classes_are_refused_when_the_head_is_built():
    backbone = BACKBONE.build(texts=[WORDS] * 3)
    message = refusal(MaskedRegions().build, backbone, {"image.classes": ()})
    assert message == (
        "masked_regions predicts region classes, but the features of 'image' have none; delete the store and extract "
        "features with a detector, or import published features with 'class_names'"
    )


def test_regions_of_other_classes_are_not_hidden():
    reader, example = compose_model().embedders["image"].reader, examples()[0]
    reader.classes = NAMES[::-1]
    with pytest.raises(DataError, match="the class names of the regions differ from those that are predicted"):
        hidden(reader, example, Hiding())
