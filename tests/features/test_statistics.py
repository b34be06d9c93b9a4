"""Statistics that initialise W: its outputs have mean 0 and the size of word embeddings. Ranges of known pictures."""

import numpy as np
import pytest
from kit.stored import embedder, fill, states

from mmgen.features.statistics import FeatureRange
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


@pytest.mark.parametrize("normalise", ["none", "length", "standard"])
def test_begins_as_large_as_words_and_about_zero(store, normalise):
    segment = states(embedder(features=store, normalize=normalise), *map(str, range(4, 12)))
    real = segment.states[segment.mask]
    assert 0.025 < real.std() < 0.1  # words: 0.05
    assert real.mean(0).square().mean().sqrt() < 0.03  # regions differ, they do not begin as one vector


def range_of(folder, pictures):
    path = folder / f"{len(pictures)}.h5"
    with StoreWriter(path, {"extractor": "drawn"}, dtype="float32") as writer:
        for number, features in enumerate(pictures):
            writer.add(Record(f"{number:03}", features))
        writer.finish()
    return FeatureRange.of(FeatureStore(path), 2)


def test_the_range_of_a_store_is_measured_on_one_half_and_its_limit_on_the_other(tmp_path):
    draw = np.random.default_rng(0)
    pictures = draw.normal(3, 2, (40, 2, 5)).astype(np.float32)
    pictures[:, :, 4] = 7  # a dimension that says nothing
    known = range_of(tmp_path, pictures)
    means = pictures.astype(np.float64).mean(1)
    deviation = means[::2].std(0)
    deviation[4] = 0.1 * deviation.mean()
    assert np.allclose(known.mean, means[::2].mean(0)) and np.allclose(known.deviation, deviation)
    distances = np.sqrt((((means - known.mean) / known.deviation) ** 2).mean(1))
    assert known.farthest == pytest.approx(distances[1::2].max()) and known.farthest < 3
    assert known.distance(pictures[3]) == pytest.approx(distances[3])
    assert known.distance(means[3]) == pytest.approx(distances[3])
    assert known.distance(pictures[3] + 50) > 10 * known.farthest


def test_few_pictures_show_no_range(tmp_path):
    assert range_of(tmp_path, np.ones((19, 2, 3), np.float32)) is None
    same = range_of(tmp_path, np.ones((20, 2, 3), np.float32))
    assert same.farthest == 0 and np.isfinite(same.distance(np.zeros(3)))
