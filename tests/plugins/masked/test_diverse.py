"""Diverse beam search: groups of beams."""

import pytest
from kit import toys
from mmgen_encoders import Bert, Roberta

from mmgen import Decoding
from mmgen.evaluation.answers import generate


@pytest.fixture(scope="module", params=[Bert, Roberta], ids=["bert", "roberta"])
def model(request):
    return toys.model(request.param)


def test_diverse_groups_of_one_beam_without_penalty_are_all_greedy(model):
    examples = toys.examples(4)
    greedy = [texts[0].tokens for texts in generate(model, examples)]
    diverse = generate(model, examples, Decoding(num_beams=3, num_beam_groups=3, num_return_sequences=3))
    assert [{t.tokens for t in texts} for texts in diverse] == [{tokens} for tokens in greedy]


def test_the_first_diverse_group_is_not_penalised_and_others_differ(model):
    examples = toys.examples(4)
    greedy = [texts[0].tokens for texts in generate(model, examples)]
    diverse = generate(
        model, examples, Decoding(num_beams=3, num_beam_groups=3, diversity_penalty=50.0, num_return_sequences=3)
    )
    for tokens, texts in zip(greedy, diverse, strict=True):
        assert tokens in [t.tokens for t in texts]
        assert len({t.tokens[0] for t in texts}) == 3
