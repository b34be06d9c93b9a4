"""The guard: who may ask, how much, how fast; the log, and errors without insides."""

import asyncio
import logging
import time
from types import SimpleNamespace

import pytest
from kit import served
from mmgen_serve.guard import Guard, json_response
from mmgen_serve.limits import Limits
from mmgen_serve.metrics import Metrics

BODY = {"inputs": {"image": served.encoded(), "caption": "a red dog"}}


def message(response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["message"]


def test_a_body_is_counted_as_it_arrives(predictor):
    with served.client(predictor, Limits(body=1000)) as client:
        too_large = (413, "the body has more than 1,000 bytes; send smaller pictures")
        assert message(client.post("/v1/ask", content=b"x" * 1001)) == too_large

        def endless():
            for _ in range(100):
                yield b"x" * 100

        assert message(client.post("/v1/ask", content=endless())) == too_large  # without Content-Length
        files = {"picture": ("x", b"x" * 2000)}
        assert message(client.post("/v1/ask", files=files)) == too_large
        assert message(client.post("/v1/ask", content=b"x" * 1000))[0] == 400


def test_a_body_has_a_deadline(predictor):
    with served.client(predictor, Limits(upload_time=0.0)) as client:
        response = client.post("/v1/ask", content=b"{}")
        assert response.headers["connection"] == "close"
        assert message(response) == (
            408,
            "the body did not arrive within 0 seconds; send it faster",
        )


def test_a_body_counts_until_its_answer(predictor):
    with served.client(predictor, Limits(bodies=1000)) as client:
        for _ in range(2):  # what was refused counts no more
            response = client.post("/v1/ask", content=b"x" * 1001)
            text = "all requests together have 1,000 bytes already; try again in a second"
            assert message(response) == (503, text) and response.headers["retry-after"] == "1"
        assert message(client.post("/v1/ask", content=b"x" * 1000))[0] == 400

        def endless():
            for _ in range(100):
                yield b"x" * 100

        assert message(client.post("/v1/ask", content=endless()))[0] == 503  # without Content-Length


def bodies_of(sizes: list[int], limits: Limits, read=lambda: None) -> list[int]:
    """The statuses of requests with bodies of these sizes, each sent while the earlier ones are held. `read` is called
    when a body was read."""

    async def app(scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        read()
        assert (await receive())["type"] == "http.disconnect"
        await json_response({})(scope, receive, send)

    async def run():
        guard, finish, statuses = Guard(app, limits, Metrics(), loopback=False), asyncio.Event(), [0] * len(sizes)

        async def request(place, size):
            messages = iter([{"type": "http.request", "body": b"x" * size}])

            async def receive():
                if (message := next(messages, None)) is None:
                    await finish.wait()
                return message or {"type": "http.disconnect"}

            async def send(message):
                statuses[place] = message.get("status", statuses[place])

            scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []}
            await guard(scope, receive, send)

        tasks = []
        for place, size in enumerate(sizes):
            tasks.append(asyncio.create_task(request(place, size)))
            await asyncio.sleep(0.02)
        finish.set()
        await asyncio.gather(*tasks)
        assert guard.held == 0
        return statuses

    return asyncio.run(run())


def test_bodies_of_all_requests_are_limited_together():
    assert bodies_of([600, 300, 200, 100], Limits(bodies=1000)) == [200, 200, 503, 200]


def test_the_deadline_of_a_body_ends_with_the_body(monkeypatch):
    clock = [0.0]
    fake_time = SimpleNamespace(monotonic=lambda: clock[0], perf_counter=time.perf_counter)
    monkeypatch.setattr("mmgen_serve.guard.time", fake_time)
    assert bodies_of([100], Limits(upload_time=60), lambda: clock.append(clock.pop() + 61)) == [200]


def test_too_many_parts(predictor):
    with served.client(predictor, Limits(parts=2)) as client:
        data = {name: "x" for name in "abc"}
        status, text = message(client.post("/v1/ask", data=data, files={"picture": ("x", b"x")}))
        assert status == 400 and text.startswith("the form cannot be read: Too many")


def test_a_token(predictor):
    with served.client(predictor, token="secret") as client:
        missing = (401, 'the token is missing or wrong; send the header "Authorization: Bearer TOKEN"')
        assert message(client.get("/v1/models")) == missing
        assert message(client.get("/metrics", headers={"Authorization": "Bearer wrong"})) == missing
        assert client.get("/v1/models", headers={"Authorization": "Bearer secret"}).status_code == 200
        assert client.get("/health").status_code == client.get("/").status_code == 200


def test_other_names_and_other_pages(client, predictor):
    refused = (421, "the service answers to 127.0.0.1 and localhost; use one of these names")
    assert message(client.get("/health", headers={"Host": "rebound.example"})) == refused
    assert client.get("/health", headers={"Host": "localhost:8000"}).status_code == 200
    refused = (403, "requests of other web pages are not answered; call the service from a program")
    assert message(client.post("/v1/ask", json=BODY, headers={"Origin": "https://x.org"})) == refused
    assert client.get("/health", headers={"Origin": served.ADDRESS}).status_code == 200
    with served.client(predictor, loopback=False) as public:
        assert public.get("/health", headers={"Host": "questions.example"}).status_code == 200


def test_too_many_connections(predictor):
    with served.client(predictor, Limits(connections=1), connections=lambda: 2) as client:
        response = client.get("/health")
        assert message(response) == (503, "there are 1 connections already; try again in a second")
        assert response.headers["retry-after"] == "1"


def test_a_request_keeps_its_id(client):
    assert client.get("/health", headers={"X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert client.get("/health", headers={"X-Request-ID": "a\tb"}).headers["x-request-id"] != "a\tb"
    assert client.get("/none").headers["x-request-id"] and "access-control-allow-origin" not in client.get("/").headers


def test_the_log_has_no_contents(client, caplog):
    with caplog.at_level(logging.INFO, "mmgen.serve"):
        client.post("/v1/ask", json=BODY, headers={"X-Request-ID": "here"})
        client.post("/v1/ask?secret=1", json={"inputs": {"caption": "private"}})
    lines = [record.message for record in caplog.records if record.name == "mmgen.serve"]
    assert lines[0].startswith("here POST /v1/ask 200 ") and lines[1].split()[1:4] == ["POST", "/v1/ask", "400"]
    assert not any(word in " ".join(lines) for word in ("private", "secret", "dog"))


def test_an_error_of_the_program_shows_nothing_inside(predictor, caplog, monkeypatch):
    def fail(*_):
        raise KeyError("inside")

    with served.client(predictor) as client:
        monkeypatch.setattr(client.engine.predictor.names, "bind_exactly", fail)
        assert message(client.post("/v1/ask", json=BODY)) == (
            500,
            "the service failed to answer this request; its log has the reason",
        )
    assert "KeyError: 'inside'" in caplog.text


@pytest.mark.parametrize("path", ["/", "/health", "/v1/models", "/none"])
def test_headers_of_every_response(client, path):
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
