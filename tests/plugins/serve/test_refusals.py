"""Refusals as responses, and errors as refusals."""

from mmgen_serve.refusals import Refusal, refusal_of

from mmgen.errors import DataError, RunError, UnavailableError


def test_a_refusal_as_json():
    refused = Refusal(400, "n: must be at most 20, not 21", "n")
    error = {"message": refused.message, "type": "invalid_request_error", "param": "n", "code": None}
    assert refused.as_json() == {"error": error} and refused.headers == {}
    assert Refusal(503, "x").as_json()["error"]["type"] == "server_error"
    assert Refusal(401, "x").headers == {"WWW-Authenticate": "Bearer"}


def test_a_refusal_is_one_short_line():
    refused = Refusal(400, "one\ntwo\u2028" + "x" * 100_000, "y\n" * 50_000)
    assert refused.message.startswith("one two xxx") and refused.message.endswith("x...")
    assert len(refused.message) == len(refused.field) == 500 and "\n" not in refused.field


def test_what_clients_are_told():
    assert refusal_of(Refusal(418, "y")).message == "y"
    errors = {DataError("x"): 400, UnavailableError("x"): 501, RunError("x"): 500}
    assert [refusal_of(error).status for error in errors] == [*errors.values()]
    inside = refusal_of(KeyError("a secret"))
    assert inside.status == 500 and "secret" not in inside.message
