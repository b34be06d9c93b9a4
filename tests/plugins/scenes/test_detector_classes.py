"""Classes of a detector that takes similar kinds for one another."""

from collections import Counter

import numpy as np
import pytest
from mmgen_scenes.detector_classes import detector_classes
from mmgen_scenes.world import KINDS


@pytest.mark.slow
def test_detector_classes_are_the_right_kind_and_similar_kinds(data):
    """The right kind has the highest probability; similar kinds have more of the rest than other kinds; the whole
    picture has no distribution. The probabilities are reproducible."""
    shares = Counter()
    for picture, again in zip(data.pictures(), data.pictures(), strict=True):
        classes = picture.classes
        assert classes.names == tuple(KINDS) and not classes.known[-1] and classes.known[:-1].all()
        assert [classes.names[first] for first in classes.ids[:-1, 0]] == [
            label.split()[1] for label in picture.region_names[:-1]
        ]
        assert (classes.probabilities[:-1, 0] > 0.5).all() and (classes.probabilities[:-1].sum(1) <= 1 + 1e-6).all()
        assert np.array_equal(classes.probabilities, again.classes.probabilities)
        for kind, chances in zip(picture.region_names[:-1], classes.distributions(), strict=False):
            if kind.endswith(" dog"):
                shares += Counter(dict(zip(classes.names, chances.tolist(), strict=True)))
    assert shares["cat"] > 3 * shares["car"] and shares["horse"] > 3 * shares["kite"]


def test_a_plural_label_has_its_kind_and_the_background_has_none(data):
    classes = detector_classes(data.scene_sets("train")[0].scenes[0], ["blue cats", "background"])
    assert classes.names[classes.ids[0, 0]] == "cat" and classes.known.tolist() == [True, False]
