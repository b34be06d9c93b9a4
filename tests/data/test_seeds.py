"""Seeds and draws: functions of a seed and a place, and of nothing else."""

import numpy as np
import torch

from mmgen.data.seeds import RngKey, draw_from, hash_id, resolve, seed_from, seeded, share_a_picture
from mmgen.examples import Example

EXAMPLE = Example("a", {"image": "7", "caption": ("a dog", "a cat", "a bird"), "empty": ()}, ("what ?",))


def test_an_example_is_drawn_by_seed_step_epoch_and_id():
    key = RngKey(1, "first")
    values = {key.draw(EXAMPLE, 0).random() for _ in range(3)}
    different = {
        RngKey(2, "first").draw(EXAMPLE, 0).random(),
        RngKey(1, "second").draw(EXAMPLE, 0).random(),
        key.draw(EXAMPLE, 1).random(),
        key.draw(EXAMPLE, None).random(),
        key.draw(EXAMPLE, 0, "words").random(),
        key.draw(Example("b", {}), 0).random(),
    }
    assert len(values) == 1 and len(values | different) == 7


def test_alternatives_are_drawn_in_training_and_the_first_counts_elsewhere():
    captions = {RngKey().resolve(EXAMPLE, epoch).inputs["caption"] for epoch in range(30)}
    assert captions == {"a dog", "a cat", "a bird"}
    still = RngKey().resolve(EXAMPLE, None)
    assert still.inputs == {"image": "7", "caption": "a dog"}  # an input without alternatives is left out
    assert resolve(still, lambda *_: 0) is still and still.targets == EXAMPLE.targets


def test_examples_share_a_picture_by_id_or_by_a_key():
    caption = Example("b", {"image": "8", "caption": ("a dog",)})
    assert share_a_picture(EXAMPLE, Example("a", {})) and share_a_picture(EXAMPLE, Example("c", {"image": "7"}))
    assert not share_a_picture(EXAMPLE, caption)  # an equal alternative is not a picture


def test_torch_is_seeded_from_a_place_and_its_state_restored():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    with seeded(1, "model"):
        inside = torch.rand(2)
    assert torch.rand(1) == expected
    draw_from(torch.device("cpu"), 1, "model")
    assert torch.rand(2).equal(inside) and torch.initial_seed() == seed_from(1, "model") != seed_from(1, "head")


def test_numbers_are_scrambled_by_place_and_evenly():
    ids = np.array([hash_id(f"e{number}") for number in range(20_000)], np.uint64)
    first = RngKey(0, "s").scramble(ids, 1)
    assert len(set(ids.tolist())) == len(set(first.tolist())) == 20_000 and first.tolist() != ids.tolist()
    assert RngKey(0, "s").scramble(ids[7:8], 1) == first[7] != RngKey(0, "s").scramble(ids[7:8], 2)
    for count in (2, 5, 7):
        shares = np.bincount((first % np.uint64(count)).astype(int)) / 20_000
        assert abs(shares - 1 / count).max() < 0.02
    assert abs(np.corrcoef(first.astype(float), RngKey(0, "s").scramble(ids, 2).astype(float))[0, 1]) < 0.03


def test_alternatives_of_two_inputs_are_drawn_independently_and_inputs_of_one_field_alike():
    example = Example("a", {"caption": ("1", "2"), "title": ("1", "2")})
    drawn = [tuple(RngKey().resolve(example, epoch).inputs.values()) for epoch in range(40)]
    assert len(set(drawn)) == 4
