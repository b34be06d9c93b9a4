"""The command that measures encoder families."""

import pytest

from tools import encoders


@pytest.mark.slow
def test_a_family_has_a_row():
    name, plain, writing = encoders.row("albert").split("|")[1:-1]
    assert name.strip() == "`albert`" and 0.3 < float(plain) < 3 and float(writing) > 1


def test_a_reason_is_without_its_place_and_advice():
    message = "backbone.family: mmgen cannot use the encoder 'mpnet': its attention is its own; choose another encoder"
    assert encoders.reason_of("mpnet", message) == "its attention is its own"
    decoder = "backbone 'encoder': transformers' 'bart' has a decoder; choose an encoder"
    assert encoders.reason_of("bart", decoder) == "has a decoder"
