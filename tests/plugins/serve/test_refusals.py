"""Refusals as responses, and errors as refusals."""

from mmgen_serve.refusals import Refusal


def test_a_refusal_is_one_short_line():
    refused = Refusal(400, "one\ntwo\u2028" + "x" * 100_000, "y\n" * 50_000)
    assert refused.message.startswith("one two xxx") and refused.message.endswith("x...")
    assert len(refused.message) == len(refused.field) == 500 and "\n" not in refused.field
