"""Stored features as an input: the reader of a store, W, and the checks against the training features."""

import random

import numpy as np
import pytest
import torch
from kit.refusals import refusal
from kit.stored import D, E, embedder, example, features, fill, record, states
from kit.stores import FINGERPRINT

from mmgen.examples import All
from mmgen.features.classes import Classes
from mmgen.features.statistics import statistics
from mmgen.parts import Record
from mmgen.tensors import Hiding


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


def test_one_linear_layer_over_features_and_box(store):
    model = embedder(features=store)
    assert {name: tuple(p.shape) for name, p in model.named_parameters()} == {
        "projection.weight": (E, D + 4),
        "projection.bias": (E,),
    }
    segment = states(model, "3", "2", "5")
    assert segment.states.shape == (3, 5, E) and segment.mask.sum(1).tolist() == [3, 2, 5]
    ((visual, boxes, *_),) = model.reader.read(example("5"))
    assert np.array_equal(visual, features(5, 5)) and np.allclose(boxes, [0.1, 0.2, 0.6, 0.9])
    item = torch.from_numpy(np.concatenate([visual, boxes], 1))
    assert torch.allclose(segment.states[2], item @ model.projection.weight.T + model.projection.bias, atol=1e-5)


def test_several_pictures_in_one_segment(store):
    model = embedder(features=store)
    segment = states(model, All(("3", "2")), "4")
    assert segment.types.tolist() == [[0, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
    assert segment.mask.tolist() == [[True] * 5, [True] * 4 + [False]]
    assert torch.allclose(segment.states[0, :3], states(model, "3").states[0], atol=1e-6)
    assert torch.allclose(segment.states[0, 3:], states(model, "2").states[0], atol=1e-6)
    assert [model.reader.slots(key) for key in ("3", "2")] == [3, 2]
    description = model.describe(example(All(("3", "2"))))
    assert description["pictures"] == [0, 0, 0, 1, 1] and len(description["boxes"]) == len(description["names"]) == 5


def test_more_pictures_than_token_types_are_refused(store):
    reader, several = embedder(features=store).reader, example(All(("3", "2", "4")))
    advice = "show fewer, or set extra_token_types of the backbone"
    message = f"example 'e' shows 3 pictures, but the encoder has token types for 2; {advice}"
    assert refusal(reader.read, several) == message


def test_normalised(store):
    model = embedder(features=store, normalize="standard")
    seen = torch.from_numpy(np.concatenate([features(number, number) for number in range(12)]))
    normal = model._normalised(seen)
    assert torch.allclose(normal.mean(0), torch.zeros(D), atol=1e-4) and torch.allclose(
        normal.std(0), torch.ones(D), atol=0.02
    )


@pytest.mark.parametrize("normalize", ["none", "standard"])
def test_float16_features_travel_as_they_are_stored_and_give_the_same_states(store, tmp_path, normalize):
    half = fill(tmp_path / "half.h5", dtype="float16")
    rounded = [record(str(n), n, features=features(n, n).astype(np.float16).astype(np.float32)) for n in range(12)]
    full = fill(tmp_path / "full.h5", records=rounded)
    classes = Classes.surest(("cat", "dog"), np.full((3, 2), 0.5, np.float32))
    results = []
    for path, kind in ((half, np.float16), (full, np.float32)):
        model = embedder(features=path, normalize=normalize)
        model.reader.classes = classes.names
        item = tuple(regions._replace(classes=classes) for regions in model.reader.read(example("3")))
        hidden, _ = model.reader.hide(item, random.Random(0), Hiding(0.5, (1.0, 0.0)))
        collated = model.reader.collate([hidden, model.reader.read(example("5"))])
        assert item[0].features.dtype == hidden[0].features.dtype == collated["features"].numpy().dtype == kind
        results.append(model(**collated).states)
    assert torch.equal(*results) and not collated["features"][0, :3].any(1).all()
    mixed = model.reader.collate([item, embedder(features=half).reader.read(example("5"))])
    assert mixed["features"].dtype == torch.float32


def test_no_features_at_all():
    assert refusal(embedder) == 'image: no features; set features = "FOLDER" or an extractor'


def test_other_width_and_other_extractor(store, tmp_path):
    model = embedder(features=store)
    settings = model.inferred_settings()
    wide = fill(tmp_path / "wide.h5", records=[Record("3", features(2, width=9))])
    different = fill(tmp_path / "other.h5", {**FINGERPRINT, "model": "resnet50"})
    advice = "use those, or set allow_other_features = true to use features of another extractor"
    for path, change in ((wide, "width: 6 -> 9"), (different, 'fingerprint.model: "resnet18" -> "resnet50"')):
        said = refusal(lambda path: states(embedder(features=path, **settings), "3"), path)
        assert said == f"{path}: features differ from those of the training ({change}); {advice}"
    message = "image of 'e': features have width 9, but the model expects 6"
    assert refusal(states, model, Record("a", features(2, width=9))) == message
    tolerant = embedder(features=different, allow_other_features=True, **settings)
    assert states(tolerant, "3").mask.all()


@pytest.mark.parametrize("normalise", ["none", "standard"])
def test_begins_as_large_as_words_and_about_zero(store, normalise):
    """W's outputs have mean 0 and the size of word embeddings."""
    segment = states(embedder(features=store, normalize=normalise), *map(str, range(4, 12)))
    real = segment.states[segment.mask]
    assert 0.025 < real.std() < 0.1  # words: 0.05
    assert real.mean(0).square().mean().sqrt() < 0.03  # regions differ, they do not begin as one vector


def test_features_that_are_not_finite_initialise_nothing(store):
    rows = [np.full((2, D), np.nan, np.float32)]
    assert refusal(statistics, rows, D, "s") == "s: features are not finite (NaN or infinite); create them again"
