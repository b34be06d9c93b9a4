"""The first weights of a part: a function of the seed and the part's own name (promise 6)."""

import itertools

import pytest
import torch
from kit.bag import Bag
from mmgen_generators import AnyOrder
from mmgen_objectives import MaskedWords, SentenceImage

from mmgen.model import Model, Objectives, compose
from mmgen.storage.weights import state
from mmgen.testing import Tiny, Words
from mmgen.testing.toy import TEXTS

INPUTS = {"caption": Words(), "things": Bag(), "title": Bag(position=2)}


def built(names, objectives=("words", "pair"), seed: int = 0, generator: bool = True) -> Model:
    configs = {"words": MaskedWords(), "pair": SentenceImage()}
    torch.manual_seed(seed)
    return compose(
        Tiny(width=32),
        {name: INPUTS[name] for name in names},
        AnyOrder(max_tokens=8) if generator else None,
        texts=TEXTS,
        objectives=Objectives({name: configs[name] for name in objectives}),
    )


ALL = state(built(INPUTS))


@pytest.mark.parametrize(
    "names", [names for count in (1, 2, 3) for names in itertools.permutations(INPUTS, count)], ids="-".join
)
def test_inputs_change_no_other_parts_first_weights(names):
    for name, tensor in state(built(names)).items():
        assert tensor.equal(ALL[name]), name


@pytest.mark.parametrize("change", [{"objectives": ()}, {"objectives": ("pair", "words")}, {"generator": False}])
def test_neither_do_objectives_or_the_generator(change):
    weights = state(built(INPUTS, **change))
    assert len(weights) <= len(ALL) and all(tensor.equal(ALL[name]) for name, tensor in weights.items())


def test_parts_of_one_kind_and_models_of_two_seeds_differ():
    assert not ALL["embedders.things.change.weight"].equal(ALL["embedders.title.change.weight"])
    drawn = [name for name, tensor in ALL.items() if tensor.unique().numel() > 1]  # biases and norms are constants
    other = state(built(INPUTS, seed=1))
    assert {name.split(".")[0] for name in drawn} >= {"backbone", "embedders", "objectives"}
    assert not any(other[name].equal(ALL[name]) for name in drawn)


def test_building_a_model_leaves_torchs_random_state_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    compose(Tiny(width=32), INPUTS, None, texts=TEXTS)
    assert torch.get_rng_state().equal(before)
