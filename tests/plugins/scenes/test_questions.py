"""Questions about the things of a scene."""

from random import Random

import pytest
from mmgen_scenes import questions
from mmgen_scenes.world import sample


@pytest.mark.parametrize("seed", range(5))
def test_questions_are_different_and_of_several_forms(seed):
    rng = Random(seed)
    scene = sample(rng, "s", 4, 6)
    texts = questions.write(rng, scene, (0, 1), 5)
    assert len({text.text for text in texts}) == 5 and all(text.text.endswith("?") for text in texts)
    openings = [" ".join(text.text.split()[:2]) for text in texts]
    assert len({*openings}) > 1
    for text in texts:
        topic, *partners = text.groups
        assert topic not in partners and all(0 <= group < len(scene.groups) for group in text.groups)
