"""The addresses of the service: answers are those of the predictor; refusals are JSON, in one line."""

import json

import pytest
from kit import served
from mmgen_serve.requests import MOST_BYTES

from mmgen.decoding import Decoding

DATA_URL = "data:image/png;base64,"
LIMITS = "trained on drawn scenes; expect no sensible answer about anything else"


def ask(client, **body):
    return client.post("/v1/ask", json={"inputs": {"image": served.encoded(), "caption": "a red dog"}, **body})


def error_of(response) -> tuple[int, str]:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and "\n" not in error["message"]
    return response.status_code, error["message"]


def message(*texts: str, pictures: int = 1) -> dict:
    url = DATA_URL + served.encoded()
    content = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}} for _ in range(pictures)]
    return {"role": "user", "content": content + [{"type": "text", "text": text} for text in texts]}


def chat(client, *texts: str, **fields):
    body = {"model": "served/both", "messages": [message(*texts)], **fields}
    return client.post("/v1/chat/completions", json=body)


def test_texts_are_those_of_the_predictor_by_json_and_by_form(client, predictor):
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=2)
    texts = [{"text": text.text, "score": round(text.score, 4)} for text in expected.texts]
    by_json = ask(client, n=2).json()
    assert by_json == {"model": "served/both", "texts": texts, "remarks": [*expected.remarks, LIMITS]}
    files, fields = {"picture": ("x.png", served.picture())}, {"caption": "a red dog", "n": "2"}
    assert client.post("/v1/ask", files=files, data=fields).json() == by_json
    body = {"picture": DATA_URL + served.encoded(), "inputs": {"caption": "a red dog"}, "n": 2}
    assert client.post("/v1/ask", json=body).json() == by_json


def test_boxes_decoding_and_prompts_are_those_of_the_request(client, predictor):
    boxes, asked = [[0, 0, 1, 0.5], [0, 0.5, 1, 1]], {"picture": served.picture(), "caption": "a red dog"}
    body = {"inputs": {"image": {"picture": served.encoded(), "boxes": boxes}, "caption": "a dog"}}
    answer = predictor.ask({"image": {"picture": served.picture(), "boxes": boxes}, "caption": "a dog"})
    assert client.post("/v1/ask", json=body).json()["texts"][0]["text"] == answer.value
    expected = predictor.ask(asked, options=Decoding(num_beams=3))
    assert ask(client, decoding={"num_beams": 3}).json()["texts"][0]["text"] == expected.value
    inputs = {"image": served.encoded(), "caption": "a red dog", "prompt": ["a dog", "red"]}
    texts = client.post("/v1/ask", json={"inputs": inputs, "n": 2}).json()["texts"]
    assert texts == predictor.ask({**asked, "prompt": ["a dog", "red"]}, n=2).as_json()["texts"]


@pytest.mark.parametrize(
    ("generator", "options"),
    [("masked", {"do_sample": True, "temperature": 5.0}), ("any_order", {"temperature": 2.0})],
)
def test_a_seed_gives_the_texts_that_it_gives_in_python(tmp_path, generator, options):
    predictor = served.predictor(tmp_path, generator=generator)
    with served.client(predictor) as client:
        first = ask(client, decoding=options, seed=7).json()
        assert first["seed"] == 7 and ask(client, decoding=options, seed=7).json() == first
        expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, options=options, seed=7)
        assert first["texts"] == expected.as_json()["texts"]
        assert any(ask(client, decoding=options, seed=seed).json()["texts"] != first["texts"] for seed in range(4))
        drawn = ask(client, decoding=options).json()
        assert ask(client, decoding=options, seed=drawn["seed"]).json() == drawn


def test_where_each_word_looked(client):
    (text,) = ask(client, attention=True).json()["texts"]
    attention = text["attention"]
    assert "".join(attention["words"]).split() == text["text"].split()
    units = attention["inputs"]
    assert list(units) == ["image", "caption"] and len(units["image"]["boxes"]) == len(units["image"]["names"])
    width = sum(len(shown["names"]) for shown in units.values()) + 2
    assert len(attention["weights"]) == len(attention["words"])
    for row in attention["weights"]:
        assert len(row) == width and sum(row) == pytest.approx(1, abs=0.01)
    assert "attention" not in ask(client).json()["texts"][0]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"decoding": {"num_beams": "1000"}}, "decoding.num_beams: must be at most 20"),
        ({"seed": 3}, "seed: has an effect only on a decoding that samples; leave it out"),
        ({"model": "gpt-4"}, "model: 'gpt-4' does not exist; the model is 'served/both'"),
        (
            {"inputs": {"image": served.encoded()}},
            "the request: 'caption' is missing: step 'both' reads image and caption; add \"caption\" to \"inputs\", "
            'or a field "caption" to a form',
        ),
        (
            {"inputs": {"image": "/etc/passwd", "caption": "x"}},
            "inputs.image: not valid base64; encode the bytes of the file",
        ),
        ({"inputs": {"image": "bm8gcGljdHVyZQ==", "caption": "x"}}, "the request: not a readable image"),
        ({"inputs": {"image": [served.encoded()] * 5, "caption": "x"}}, "the request has 5 pictures; the limit is 4"),
        ({"inputs": {"image": served.encoded(), "caption": "x" * 20_000}}, "inputs: the texts have 20,0"),
    ],
)
def test_refusals(client, body, says):
    status, text = error_of(ask(client, **body))
    assert text.startswith(says) and status == (404 if "model" in body else 400)


def test_bodies_and_addresses_that_cannot_be_read(client):
    assert error_of(client.get("/v2")) == (404, "the address does not exist; /docs lists all")
    assert error_of(client.get("/v1/ask"))[0] == 405
    assert error_of(client.post("/v1/predict", json={})) == (400, "the model gives text; use /v1/ask")
    assert error_of(client.post("/v1/ask", content=b"[" * 10**5))[1].startswith("the body: Invalid JSON")
    assert error_of(client.post("/v1/ask", content=b"x" * (MOST_BYTES + 1)))[0] == 413
    form = {"content-type": "Multipart/Form-Data; boundary=x"}
    field = b'--x\r\nContent-Disposition: form-data; name="inputs"\r\n\r\n'
    for content in (b"--y\r\n", field + b"[" * 900 + b"]" * 900 + b"\r\n--x--\r\n"):
        assert error_of(client.post("/v1/ask", content=content, headers=form))[0] == 400
    assert {"/v1/ask", "/v1/predict", "/v1/models"} < {*client.get("/openapi.json").json()["paths"]}


def test_an_error_of_the_program_shows_nothing_of_its_insides(client, predictor, monkeypatch):
    monkeypatch.setattr(predictor, "finish", lambda *_: [][1])
    assert error_of(ask(client)) == (500, "the service failed to answer this request; its log has the reason")


def test_the_model_the_health_and_the_page(client):
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "served/both" and model["mmgen"]["inputs"] == {"image": "picture", "caption": "text"}
    assert model["mmgen"]["decoding"]["num_beams"] == 1 and model["mmgen"]["remark"] == LIMITS
    assert client.get("/health").json() == {"status": "ok", "waiting": 0}
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("page.css", "page.js"):  # nothing is loaded from outside
        text = client.get(f"/{name}").text
        assert name in page.text and "://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_token_a_name_and_an_origin_guard_the_service(predictor):
    with served.client(predictor, token="secret") as client:
        assert error_of(ask(client))[0] == 401
        assert client.get("/").status_code == client.get("/health").status_code == 200
        assert error_of(client.get("/v1/models", headers={"authorization": "Bearer sécret".encode()}))[0] == 401
        client.headers["authorization"] = "Bearer secret"
        assert ask(client).status_code == 200
        assert client.post("/v1/ask", headers={"host": "evil.org"}).status_code == 400
        assert error_of(client.post("/v1/ask", headers={"origin": "http://evil.org"}))[0] == 403
        assert client.get("/v1/models", headers={"origin": served.ADDRESS}).status_code == 200
    with served.client(predictor, loopback=False) as client:
        assert client.get("/health", headers={"host": "questions.example.org"}).status_code == 200


@pytest.mark.parametrize("task", ["answers", "pairs", "choices", "expressions", "phrases"])
def test_a_step_that_predicts(tmp_path, task):
    predictor = served.predicts(tmp_path, task)
    names = predictor.names
    values = {name: served.picture() if names.takes[name] == "picture" else "a dog" for name in names.required}
    values |= dict.fromkeys(names.labels, ["a dog", "a cat"] if names.filled else "a dog")
    inputs = {name: served.encoded() if isinstance(value, bytes) else value for name, value in values.items()}
    with served.client(predictor) as client:
        answer = client.post("/v1/predict", json={"inputs": inputs}).json()
        assert answer["kind"] == predictor.kind
        assert answer["value"] == json.loads(json.dumps(predictor.predict(values).as_json()["value"]))
        assert error_of(ask(client)) == (400, f"the model gives {predictor.kind}; use /v1/predict")


def test_a_chat_is_one_message(client, predictor):
    body = chat(client, "a red dog", n=3, stop=None, user="u", logprobs=False).json()
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=3).texts
    assert [choice["message"]["content"] for choice in body["choices"]] == [text.text for text in expected]
    end = predictor.model.backbone.end_id
    reasons = ["stop" if text.tokens[-1] == end else "length" for text in expected]
    assert [choice["finish_reason"] for choice in body["choices"]] == reasons
    assert body["usage"]["completion_tokens"] == sum(len(text.tokens) for text in expected)
    assert chat(client, inputs={"caption": "a red dog"}, n=3).json()["choices"] == body["choices"]
    event, done, rest = chat(client, "a red dog", n=3, stream=True).text.split("\n\n")
    chunk = json.loads(event.removeprefix("data: "))
    assert (done, rest, chunk["object"]) == ("data: [DONE]", "", "chat.completion.chunk")
    assert [choice["delta"]["content"] for choice in chunk["choices"]] == [text.text for text in expected]


def test_a_temperature_samples_and_zero_does_not(client):
    first = chat(client, "a dog", temperature=2.0, seed=3).json()
    assert chat(client, "a dog", temperature=2.0, seed=3).json()["choices"] == first["choices"]
    assert chat(client, "a dog", temperature=0).json()["choices"] == chat(client, "a dog").json()["choices"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"messages": [{"role": "system", "content": "be kind"}, message("x")]},
            "messages: the model reads one message",
        ),
        ({"inputs": {"caption": "y"}}, "messages: the model has 0 inputs for a text; leave the text out"),
    ],
)
def test_what_the_model_cannot_do_is_refused(client, fields, says):
    assert error_of(chat(client, "a red dog", **fields))[1].startswith(says)
