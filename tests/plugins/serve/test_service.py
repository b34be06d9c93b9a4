"""The addresses of the service: answers are those of the predictor; refusals are JSON, in one line."""

import json

import pytest
from kit import served, servers, small_runs
from mmgen_serve.app import MOST_BYTES

import mmgen
from mmgen.decoding import Decoding

pytestmark = pytest.mark.slow

DATA_URL = "data:image/png;base64,"
LIMITS = "trained on drawn scenes; expect no sensible answer about anything else"


def ask(client, **body):
    return client.post("/v1/ask", json={"inputs": {"image": served.encoded(), "caption": "a red dog"}} | body)


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


def test_texts_are_those_of_the_predictor(client, predictor):
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=2)
    texts = [{"text": text.text, "score": round(text.score, 4)} for text in expected.texts]
    line = {"model": "served/both", "kind": "text", "texts": texts, "remarks": [*expected.remarks, LIMITS]}
    assert ask(client, n=2).json() == line
    inputs = {"picture": DATA_URL + served.encoded(), "caption": "a red dog"}
    assert client.post("/v1/ask", json={"inputs": inputs, "n": 2}).json() == line
    assert client.post("/v1/predict", json={"inputs": inputs, "n": 2}).json() == line


def test_texts_that_cannot_be_measured_or_filled_are_refused(client):
    body = {"inputs": {"image": served.encoded(), "caption": "a dog"}}
    assert "has no gap" in error_of(client.post("/v1/fill", json={**body, "text": "what"}))[1]
    assert error_of(client.post("/v1/likelihood", json={**body, "texts": []}))[0] == 400


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
    [
        ("masked", {"do_sample": True, "temperature": 5.0}),
        ("any_order", {"temperature": 2.0}),
    ],
)
def test_a_seed_gives_the_texts_that_it_gives_in_python(generator, options):
    predictor = served.predictor(generator)
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
        ({"n": 21}, "n: "),
        ({"n": "2"}, "n: "),
        ({"num": 2}, "num: "),
        ({"picture": served.encoded()}, "picture: "),
        ({"decoding": {"num_beams": "1000"}}, "decoding.num_beams: must be at most 20"),
        ({"decoding": {"num_beam": 2}}, "num_beam: no such key; did you mean 'num_beams'?"),
        ({"seed": 3}, "seed: has an effect only on a decoding that samples (do_sample = true); leave it out"),
        (
            {"inputs": {"image": served.encoded()}},
            "the request: 'caption' is missing: step 'both' reads image and caption; add \"caption\" to \"inputs\"",
        ),
        (
            {"inputs": {"image": served.encoded(), "caption": "x", "words": "y"}},
            "the request: unknown input 'words'; available: image, caption, prompt",
        ),
        (
            {"inputs": {"image": "/etc/passwd", "caption": "x"}},
            "the request: image: expected base64 of a file, or a data: URL with it; addresses are never fetched",
        ),
        ({"inputs": {"image": "https://x.org/a", "caption": "x"}}, "the request: image: expected base64 of a file"),
        ({"inputs": {"image": "bm8gcGljdHVyZQ==", "caption": "x"}}, "the request: "),
        ({"inputs": {"image": [served.encoded()] * 21, "caption": "x"}}, "inputs: an input has at most 20 values"),
        ({"inputs": {"image": served.encoded(), "caption": 7}}, "the request: 'caption' must be a string, not 7"),
    ],
)
def test_refusals(client, body, says):
    status, text = error_of(ask(client, **body))
    assert text.startswith(says) and status == 400


def test_bodies_and_addresses_that_cannot_be_read(client):
    assert error_of(client.get("/v2")) == (404, "Not Found")
    assert error_of(client.get("/v1/ask"))[0] == 405
    is_json = {"content-type": "application/json"}
    for content, headers in ((b"[" * 10**5, is_json), (b"{", is_json), (b"", is_json), (b"{}", {}), (b"[]", is_json)):
        assert error_of(client.post("/v1/ask", content=content, headers=headers))[0] == 400
    for content in (b"x" * (MOST_BYTES + 1), iter([b"x" * 2**20] * 21)):  # also without a length
        assert client.post("/v1/ask", content=content, headers=is_json).status_code == 413
    assert {"/v1/ask", "/v1/predict", "/v1/models"} < {*client.get("/openapi.json").json()["paths"]}
    assert client.get("/docs").status_code == 200


def test_an_error_of_the_program_shows_nothing_of_its_insides(client, predictor, monkeypatch):
    monkeypatch.setattr(predictor, "finish", lambda *_: [][1])
    assert error_of(ask(client)) == (500, "the service failed to answer this request; its log has the reason")


def test_the_model_the_health_and_the_page(client):
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "served/both" and model["mmgen"]["inputs"] == {"image": "picture", "caption": "text"}
    assert model["mmgen"]["decoding"]["num_beams"] == 1 and model["mmgen"]["remark"] == LIMITS
    assert client.get("/health").json() == {"status": "ok", "waiting": 0}
    page = client.get("/")
    for name in ("page.css", "page.js"):  # nothing is loaded from outside
        text = client.get(f"/{name}").text
        assert name in page.text and "://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_a_token_and_a_name_guard_the_service(predictor):
    with served.client(predictor, token="secret") as client:
        assert (
            error_of(ask(client))[0] == 401 and client.get("/").status_code == client.get("/health").status_code == 200
        )
        assert error_of(client.get("/v1/models", headers={"authorization": "Bearer sécret".encode()}))[0] == 401
        client.headers["authorization"] = "Bearer secret"
        assert ask(client).status_code == 200
        assert client.post("/v1/ask", headers={"host": "evil.org"}).status_code == 400
    with served.client(predictor, loopback=False) as client:
        assert client.get("/health", headers={"host": "questions.example.org"}).status_code == 200


@pytest.mark.parametrize("step", ["answers", "choices", "expressions"])
def test_a_step_that_predicts(step):
    predictor = mmgen.load(small_runs.drawn("predicts"), step, device="cpu")
    names = predictor.names
    values = {name: served.picture() if names.takes[name] == "picture" else "a dog" for name in names.required}
    values |= (
        {} if predictor.kind == "text" else dict.fromkeys(names.labels, ["a dog", "a cat"] if names.filled else "a dog")
    )
    inputs = {name: served.encoded() if isinstance(value, bytes) else value for name, value in values.items()}
    with served.client(predictor) as client:
        answer = client.post("/v1/predict", json={"inputs": inputs}).json()
        assert answer["kind"] == predictor.kind
        assert answer["value"] == json.loads(json.dumps(predictor.predict(values).as_json()["value"]))
        assert ask(client, inputs=inputs, attention=True).json() == answer
        assert error_of(chat(client, "a dog"))[1] == f"the model gives {predictor.kind}; use /v1/predict"


def test_a_chat_is_one_message(client, predictor):
    body = chat(client, "a red dog", n=3, stop=None, user="u", logprobs=False).json()
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=3).texts
    assert [choice["message"]["content"] for choice in body["choices"]] == [text.text for text in expected]
    end = predictor.model.backbone.end_id
    reasons = ["stop" if text.tokens[-1] == end else "length" for text in expected]
    assert [choice["finish_reason"] for choice in body["choices"]] == reasons
    assert chat(client, inputs={"caption": "a red dog"}, n=3).json()["choices"] == body["choices"]
    event, done, rest = chat(client, "a red dog", n=3, stream=True).text.split("\n\n")
    chunk = json.loads(event.removeprefix("data: "))
    assert (done, rest, chunk["object"]) == ("data: [DONE]", "", "chat.completion.chunk")
    assert [choice["delta"]["content"] for choice in chunk["choices"]] == [text.text for text in expected]


def test_a_temperature_samples_and_zero_does_not(client, predictor, monkeypatch):
    first = chat(client, "a dog", temperature=2.0, seed=3).json()
    assert chat(client, "a dog", temperature=2.0, seed=3).json()["choices"] == first["choices"]
    assert first["mmgen"] == {"remarks": first["mmgen"]["remarks"], "seed": 3}
    assert chat(client, "a dog", temperature=0).json()["choices"] == chat(client, "a dog").json()["choices"]
    beams = predictor.recipe.decoding.model_copy(update={"num_beams": 2})
    monkeypatch.setattr(predictor, "recipe", predictor.recipe.model_copy(update={"decoding": beams}))
    assert len(chat(client, "a dog", temperature=1.0, seed=3, n=3).json()["choices"]) == 3  # without beams


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"messages": [{"role": "system", "content": "be kind"}, message("x")]},
            "messages: the model reads one message",
        ),
        ({"messages": [{"role": "user"}]}, "messages.0.content: "),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]}, "messages: parts are "),
        ({"inputs": {"caption": "y"}}, "messages: the model has 0 inputs for a text; leave the text out"),
        ({"temperature": 3}, "temperature: "),
        ({"model": "gpt-4"}, "model: 'gpt-4' does not exist; the model is 'served/both'"),
        ({"seed": 1}, "seed: has an effect only on a decoding that samples"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.org/a"}}]}
                ],
                "inputs": {"caption": "x"},
            },
            "the request: image: expected base64 of a file, or a data: URL with it; addresses are never fetched",
        ),
    ],
)
def test_what_the_model_cannot_do_is_refused(client, fields, says):
    assert error_of(chat(client, "a red dog", **fields))[1].startswith(says)


def test_openais_client_works_unchanged(predictor):
    openai = pytest.importorskip("openai", reason="needs OpenAI's client")
    with servers.running(predictor) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        asked = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=2)
        expected, messages = [text.text for text in asked.texts], [message("a red dog")]
        done = client.chat.completions.create(model="served/both", messages=messages, n=2)
        assert [choice.message.content for choice in done.choices] == expected
        chunks = client.chat.completions.create(model="served/both", messages=messages, n=2, stream=True)
        assert [choice.delta.content for chunk in chunks for choice in chunk.choices] == expected
        assert [model.id for model in client.models.list()] == ["served/both"]
        with pytest.raises(openai.NotFoundError, match="'gpt-4' does not exist"):
            client.chat.completions.create(model="gpt-4", messages=messages)
