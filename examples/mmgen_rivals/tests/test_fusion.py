"""How inputs become one vector: the pairs of cues, the gate over experts, and Monte Carlo dropout, by numbers."""

import pytest
import torch
from mmgen.data.seeds import resolve
from torch import nn

from mmgen_rivals.fusion import MonteCarloDropout, Pair, drawn_network
from written_out import collated, crossed, examples, first_inputs, model, pair


def fused(rival, many=None):
    return rival.backbone.fused(rival.prefix(collated(rival, many or examples(), ())).slots)


@torch.no_grad()
@pytest.mark.parametrize("how", ["multiply", "add", "concatenate"])
def test_a_pair_joins_two_cues(how):
    torch.manual_seed(0)
    module = Pair(6, how, 0.5, lambda: nn.Dropout(0.5)).eval()
    first, second = torch.randn(2, 3, 6)
    vectors = module(first, second)
    for row in range(3):
        assert torch.allclose(vectors[row], pair(module, first[row], second[row]), atol=1e-6)


@torch.no_grad()
@pytest.mark.parametrize("system", ["max", "mdn_joint", "mc_sbn", "without_place"])
def test_the_first_input_of_the_lstm(system):
    rival = model(system)
    for vector, example in zip(fused(rival), examples(), strict=True):
        assert torch.allclose(vector, first_inputs(rival, resolve(example))[0], atol=1e-5)


@torch.no_grad()
def test_a_caption_is_heard_beside_a_picture_before_training():
    """The first input differs more between captions of one picture than between pictures of one caption."""
    rival = model("mdn_joint", noise=0, hidden_size=160)
    vectors = fused(rival, crossed(12, 12)).unflatten(0, (12, 12))
    between_captions, between_pictures = (vectors.var(axis).mean() for axis in (0, 1))
    assert between_captions > between_pictures


@torch.no_grad()
def test_the_gate_weighs_the_experts_that_the_step_has_cues_for():
    rival = model("without_place")
    experts = rival.backbone.experts
    plain = fused(rival)
    for parameter in experts.pairs[2].parameters():
        parameter.fill_(9.0)
    assert torch.equal(fused(rival), plain)  # no place, so no word of its expert
    experts.gate.weight.zero_()
    experts.gate.bias.copy_(torch.tensor([50.0, 0.0, 90.0]))
    first = fused(rival)
    for parameter in experts.pairs[1].parameters():
        parameter.fill_(9.0)
    assert torch.allclose(fused(rival), first, atol=1e-5)  # the gate listens to the caption's expert alone


def test_in_training_dropout_is_drawn_for_each_unit_and_off_in_validation():
    drop, states = MonteCarloDropout(0.5), torch.ones(200, 50)
    torch.manual_seed(0)
    dropped = drop(states)
    assert set(dropped.unique().tolist()) == {0.0, 2.0} and abs(dropped.mean().item() - 1) < 0.05
    assert not torch.equal(dropped[0], dropped[1])
    drop.eval()
    assert torch.equal(drop(states), states)


def test_a_drawn_network_drops_the_same_units_everywhere():
    drop, second_drop, states = MonteCarloDropout(0.5).eval(), MonteCarloDropout(0.5).eval(), torch.ones(3, 4, 400)
    second_drop.place = 1
    networks = []
    for number in range(40):
        with drawn_network(number):
            networks.append(drop(states))
            assert torch.equal(drop(states[:1]), networks[-1][:1])
            assert not torch.equal(second_drop(states), networks[-1])
    assert torch.equal(drop(states), states)
    assert all(torch.equal(network, network[:1, :1].expand_as(network)) for network in networks)
    assert not torch.equal(networks[0], networks[1])
    assert abs(torch.stack(networks).mean().item() - 1) < 0.02  # a network's units are scaled, so their mean is 1


def test_every_layer_of_monte_carlo_dropout_has_a_place():
    rival = model("mc_sbn")
    places = [module.place for module in rival.modules() if isinstance(module, MonteCarloDropout)]
    assert sorted(places) == list(range(len(places))) and len(places) == 7
