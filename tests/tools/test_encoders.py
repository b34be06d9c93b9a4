"""The command that measures encoder families."""

from kit import families

from tools import encoders


def test_differences_are_those_of_rounding():
    packed, cached = encoders.differences(families.build("albert"))
    assert 0 < packed < 1e-5 and 0 < cached < 1e-5


def test_a_reason_is_without_its_place_and_advice():
    message = "backbone.family: mmgen cannot use the encoder 'mpnet': its attention is its own; choose another encoder"
    assert encoders.reason_of("mpnet", message) == "its attention is its own"
    decoder = "backbone 'encoder': transformers' 'bart' has a decoder; choose an encoder"
    assert encoders.reason_of("bart", decoder) == "it has a decoder"


def test_families_with_the_same_reason_share_a_line():
    refused = [("luke", "it has its own code"), ("neomme", "it takes no inputs_embeds"), ("mra", "it has its own code")]
    assert [*encoders.reasons(refused)] == [
        "- `luke`, `mra`: it has its own code.",
        "- `neomme`: it takes no inputs_embeds.",
    ]
