"""Refusals as responses."""

from mmgen_serve.limits import Refusal


def test_a_refusal_as_json():
    refused = Refusal(400, "n: must be at most 20, not 21", "n")
    error = {"message": refused.message, "type": "invalid_request_error", "param": "n", "code": None}
    assert refused.as_json() == {"error": error} and refused.headers == {}
    assert Refusal(503, "x").as_json()["error"]["type"] == "server_error"
    assert Refusal(401, "x").headers == {"WWW-Authenticate": "Bearer"}
