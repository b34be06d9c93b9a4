"""The OpenAPI description: every example can be sent, and every route is in it."""

import json

import pytest
from kit import served


@pytest.mark.parametrize("generator", ["masked", "any_order"])
def test_every_example_is_answered(tmp_path, generator):
    with served.client(served.predictor(tmp_path, generator=generator)) as client:
        assert_answered(client)


def assert_answered(client):
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    sent = 0
    for path, methods in described["paths"].items():
        if "get" in methods:
            assert client.get(path).status_code == 200
            continue
        body = methods["post"]["requestBody"]["content"]["application/json"]
        response = client.post(path, json=body["example"])
        assert response.status_code == 200, response.text
        jsonschema = pytest.importorskip("jsonschema")
        jsonschema.validate(body["example"], body["schema"])
        sent += 1
    assert sent == 2


@pytest.mark.parametrize("task", ["answers", "pairs", "choices", "expressions", "phrases"])
def test_the_example_of_every_task_is_answered(tmp_path, task):
    with served.client(served.predicts(tmp_path, task)) as client:
        described = client.get("/openapi.json").json()["paths"]
        assert "/v1/ask" not in described and "/v1/chat/completions" not in described
        example = described["/v1/predict"]["post"]["requestBody"]["content"]["application/json"]["example"]
        response = client.post("/v1/predict", json=example)
        assert response.status_code == 200, response.text
        message = {"role": "user", "content": "a dog"}
        chat = client.post("/v1/chat/completions", json={"model": "served/both", "messages": [message]})
        assert chat.status_code == 400 and chat.json()["error"] == {
            "message": f"the model gives {response.json()['kind']}; use /v1/predict",
            "type": "invalid_request_error",
            "param": None,
            "code": None,
        }


def test_every_route_is_described(client):
    described = client.get("/openapi.json").json()["paths"]
    routes = {route.path for route in client.app.routes}
    assert routes - set(described) == {"/", "/page.css", "/page.js", "/openapi.json", "/v1/predict"}
    assert json.dumps(described["/v1/ask"]).count('"description"') > 8
