"""Statistics that initialise W: its outputs have mean 0 and the size of word embeddings."""

import pytest
from kit.stored import embedder, fill, states


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


@pytest.mark.parametrize("normalise", ["none", "length", "standard"])
def test_begins_as_large_as_words_and_about_zero(store, normalise):
    segment = states(embedder(features=store, normalize=normalise), *map(str, range(4, 12)))
    real = segment.states[segment.mask]
    assert 0.025 < real.std() < 0.1  # words: 0.05
    assert real.mean(0).square().mean().sqrt() < 0.03  # regions differ, they do not begin as one vector
