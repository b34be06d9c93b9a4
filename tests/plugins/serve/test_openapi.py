"""The OpenAPI description: every example can be sent, and every route is in it."""

import json

import pytest


def test_every_example_is_answered(client):
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


def test_every_route_is_described(client):
    described = client.get("/openapi.json").json()["paths"]
    routes = {route.path for route in client.app.routes}
    assert routes - set(described) == {"/", "/page.css", "/page.js", "/openapi.json", "/v1/predict"}
    assert json.dumps(described["/v1/ask"]).count('"description"') > 8
