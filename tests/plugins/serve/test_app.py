"""The routes of the service: answers are those of the predictor; refusals are JSON, in one line."""

import base64
import http.client
import json
import threading
import urllib.request

import pytest
from kit import served, servers

from mmgen.decoding import Decoding
from mmgen.features.images import FORMATS

DATA_URL = "data:image/png;base64,"
LIMITS = "trained on drawn scenes; expect no sensible answer about anything else"


def ask(client, **body):
    return client.post("/v1/ask", json={"inputs": {"image": served.encoded(), "caption": "a red dog"}, **body})


def error_of(response) -> tuple[int, str, str | None]:
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"} and "\n" not in error["message"]
    return response.status_code, error["message"], error["param"]


def test_texts_are_those_of_the_predictor_by_json_and_by_form(client, predictor):
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=2)
    texts = [{"text": text.text, "score": round(text.score, 4)} for text in expected.texts]
    by_json = ask(client, n=2).json()
    assert by_json == {"model": "served/both", "texts": texts, "remarks": [*expected.remarks, LIMITS]}
    files, fields = {"picture": ("x.png", served.picture())}, {"caption": "a red dog", "n": "2"}
    assert client.post("/v1/ask", files=files, data=fields).json() == by_json
    fields = {"inputs": '{"caption": "a red dog"}', "n": "2"}
    assert client.post("/v1/ask", files={"image": ("x", served.picture())}, data=fields).json() == by_json
    url = f"data:image/png;base64,{served.encoded()}"
    body = {"picture": url, "inputs": {"caption": "a red dog"}, "n": 2}
    assert client.post("/v1/ask", json=body).json() == by_json


def test_boxes_go_with_a_picture(client, predictor):
    boxes = [[0, 0, 1, 0.5], [0, 0.5, 1, 1]]
    body = {"inputs": {"image": {"picture": served.encoded(), "boxes": boxes}, "caption": "a dog"}}
    answer = predictor.ask({"image": {"picture": served.picture(), "boxes": boxes}, "caption": "a dog"})
    assert client.post("/v1/ask", json=body).json()["texts"][0]["text"] == answer.value


def test_decoding_is_that_of_the_request(client, predictor):
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, options=Decoding(num_beams=3))
    assert ask(client, decoding={"num_beams": 3}).json()["texts"][0]["text"] == expected.value


def test_a_seed_repeats_a_sample(client):
    options = {"do_sample": True, "temperature": 5.0}
    first = ask(client, decoding=options, seed=7).json()
    assert first["seed"] == 7 and ask(client, decoding=options, seed=7).json() == first
    samples = [ask(client, decoding=options, seed=seed).json()["texts"] for seed in range(4)]
    assert any(texts != first["texts"] for texts in samples)
    drawn = ask(client, decoding=options).json()
    assert ask(client, decoding=options, seed=drawn["seed"]).json() == drawn


def test_a_seed_gives_the_texts_that_it_gives_in_python(client, predictor):
    options = {"do_sample": True, "temperature": 5.0, "num_return_sequences": 2}
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, options=options, seed=7)
    assert [text["text"] for text in ask(client, decoding=options, seed=7).json()["texts"]] == [
        text.text for text in expected.texts
    ]


def test_remarks_are_in_every_answer_and_the_model_says_what_it_knows(client, monkeypatch):
    monkeypatch.setattr("mmgen.inference.predictor.repeats_itself", lambda text: "it stutters")
    message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": DATA_URL + served.encoded()}}]}
    sampled = {"decoding": {"do_sample": True}, "seed": 3, "inputs": {"caption": "a dog"}}
    chat = client.post("/v1/chat/completions", json={"model": "served/both", "messages": [message], **sampled}).json()
    assert chat["mmgen"]["seed"] == 3
    for remarks in (ask(client).json()["remarks"], chat["mmgen"]["remarks"]):
        assert "it stutters" in remarks and remarks[-1] == LIMITS
    assert client.get("/v1/models").json()["data"][0]["mmgen"]["remark"] == LIMITS
    page = client.get("/").text
    assert '<p id="limits">' in page.partition("</header>")[0] and "limits" in client.get("/page.js").text


def test_a_seed_repeats_a_sample_in_any_order(tmp_path):
    with served.client(served.predictor(tmp_path, generator="any_order")) as client:
        for options in ({"temperature": 2.0}, {"order": "random"}):
            first = ask(client, decoding=options, seed=7).json()
            assert first["seed"] == 7 and ask(client, decoding=options, seed=7).json() == first
            assert "seed" in ask(client, decoding=options).json()
        message = "seed: has an effect only on a decoding that samples; leave it out"
        assert error_of(ask(client, seed=7)) == (400, message, "seed")


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
    ("body", "message", "field"),
    [
        ({"n": 21}, "n: must be at most 20, not 21", "n"),
        ({"n": 0}, "n: must be at least 1, not 0", "n"),
        ({"n": "2"}, 'n: must be a whole number, not "2"', "n"),
        ({"num": 2}, "num: no such key", "num"),
        ({"n": 10**3000}, f"n: must be at most 20, not 1{'0' * 59}", "n"),
        ({"decoding": {"num_beams": 1000}}, "decoding.num_beams: must be at most 20", "decoding.num_beams"),
        ({"decoding": {"num_beams": "1000"}}, "decoding.num_beams: must be at most 20", "decoding.num_beams"),
        (
            {"decoding": {"num_beam": 2}},
            "decoding: num_beam: no such key; did you mean 'num_beams'?",
            "decoding",
        ),
        (
            {"n": 5, "decoding": {"do_sample": True, "num_beams": 3}},
            "decoding: num_return_sequences: 5 texts need num_beams of at least that number, not 3, or num_beams = 1, "
            "so that each text is sampled",
            "decoding",
        ),
        (
            {"decoding": {"min_new_tokens": 6}},
            "decoding: min_new_tokens: must be at most 5: generator.max_tokens = 6 includes the end token",
            "decoding",
        ),
        ({"seed": 3}, "seed: has an effect only on a decoding that samples; leave it out", "seed"),
        ({"model": "gpt-4"}, "model: 'gpt-4' does not exist; the model is 'served/both'", "model"),
        (
            {"inputs": {"image": served.encoded()}},
            "the request: 'caption' is missing: step 'both' reads image and caption; add \"caption\" to \"inputs\", "
            'or a field "caption" to a form',
            "inputs",
        ),
        (
            {"inputs": {"image": served.encoded(), "caption": "x", "words": "y"}},
            "the request: unknown input 'words'; available: image, caption, prompt, avoid",
            "inputs",
        ),
        (
            {"inputs": {"image": "/etc/passwd", "caption": "x"}},
            "inputs.image: not valid base64; encode the bytes of the file",
            "inputs.image",
        ),
        (
            {"inputs": {"image": base64.b64encode(b"no picture").decode(), "caption": "x"}},
            f"the request: not a readable image: expected one of {', '.join(FORMATS)}; convert it, or download the "
            "file again",
            None,
        ),
        ({"inputs": {"image": served.encoded(), "caption": 7}}, "the request: 'caption' must be a string, not 7", None),
    ],
)
def test_refusals(client, body, message, field):
    status, text, param = error_of(ask(client, **body))
    assert (text, param) == (message, field) and status == (404 if "model" in body else 400)


def test_addresses_and_methods(client):
    assert error_of(client.get("/v2")) == (404, "the address does not exist; /openapi.json lists all", None)
    message = "the address does not take GET; /openapi.json lists what it takes"
    assert error_of(client.get("/v1/ask")) == (405, message, None)
    assert error_of(client.post("/v1/predict", json={}))[:2] == (400, "the model gives text; use /v1/ask")


def test_a_form_has_the_limits_of_json(client):
    headers = {"content-type": "Multipart/Form-Data; boundary=x"}
    deep = b'--x\r\nContent-Disposition: form-data; name="inputs"\r\n\r\n{"caption":' + b"[" * 900 + b"]" * 900
    error = error_of(client.post("/v1/ask", content=deep + b"}\r\n--x--\r\n", headers=headers))
    assert error == (400, "inputs: the JSON has more than 8 nested levels; send less", "inputs")


def test_a_broken_form(client):
    headers = {"content-type": "multipart/form-data; boundary=x"}
    status, message, _ = error_of(client.post("/v1/ask", content=b"--y\r\n", headers=headers))
    assert status == 400 and message.startswith("the form cannot be read: ")


def test_the_model_and_the_health(client):
    (model,) = client.get("/v1/models").json()["data"]
    assert model["id"] == "served/both" and model["mmgen"]["inputs"] == {"image": "picture", "caption": "text"}
    assert model["mmgen"]["decoding"]["num_beams"] == 1
    assert client.get("/health").json() == {"status": "ok", "waiting": 0}


def test_the_page_loads_nothing_from_outside(client):
    page = client.get("/")
    assert page.status_code == 200 and "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("page.css", "page.js"):
        assert name in page.text
        served_file = client.get(f"/{name}").text
        assert "http://" not in served_file.replace("http://www.w3.org/2000/svg", "") and "https://" not in served_file


def test_a_client_that_goes_away_is_not_answered(predictor, monkeypatch):
    begun, go, finish = threading.Event(), threading.Event(), predictor.finish
    answered = []

    def held(prepared, *values):
        answered.extend(query.answer.id for query in prepared)
        begun.set()
        assert go.wait(20)
        return finish(prepared, *values)

    monkeypatch.setattr(predictor, "finish", held)
    body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}})
    with servers.running(predictor) as address:

        def waiting(count):
            while json.load(urllib.request.urlopen(f"{address}/health"))["waiting"] != count:
                pass

        clients = [http.client.HTTPConnection(address.removeprefix("http://")) for _ in range(2)]
        for count, client in enumerate(clients, 1):
            client.request("POST", "/v1/ask", body)
            waiting(count)
            assert begun.wait(20)
        clients[1].close()
        waiting(1)
        go.set()
        assert clients[0].getresponse().status == 200
        metrics = urllib.request.urlopen(f"{address}/metrics").read().decode()
    assert len(answered) == 1
    assert 'mmgen_requests_total{route="/v1/ask",status="499"} 1' in metrics


def test_a_step_that_predicts(tmp_path):
    from kit import asked

    from mmgen.inference.predictor import Predictor
    from mmgen.model import Objectives, compose
    from mmgen.recipe.load import load

    blind = '[steps.answers_blind]\ninputs = ["image", "question"]'
    text = asked.recipe_text().replace(blind, blind.replace('"image", ', ""))
    (tmp_path / "answers.toml").write_text(text)
    recipe = load(tmp_path / "answers.toml", asked.registry())[0]
    inputs = {"question": recipe.inputs["question"]}
    answers = Objectives({"answers": recipe.objectives["answers"]}, {"answers": ("red", "blue", "no")})
    model = compose(recipe.backbone, inputs, recipe.generator, texts=served.WORDS, objectives=answers)
    predictor = Predictor(model, recipe, "answers_blind")
    with served.client(predictor) as client:
        body = client.post("/v1/predict", json={"inputs": {"question": "what color is it?"}}).json()
        assert body["kind"] == "label" and body["value"] == predictor.predict({"question": "what color is it?"}).value
        status, message, _ = error_of(client.post("/v1/ask", json={"inputs": {"question": "what?"}}))
        assert (status, message) == (400, "the model gives label; use /v1/predict")
        assert json.loads(client.get("/openapi.json").text)["paths"]["/v1/predict"]


def test_prompts_and_texts_to_avoid_are_inputs(client, predictor):
    inputs = {"image": served.encoded(), "caption": "a red dog", "prompt": ["a dog", "red"]}
    texts = client.post("/v1/ask", json={"inputs": inputs, "n": 2}).json()["texts"]
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog", "prompt": ["a dog", "red"]}, n=2)
    assert texts == expected.as_json()["texts"] and [text["prompt"] for text in texts] == ["a dog"] * 2 + ["red"] * 2
    attention = client.post("/v1/ask", json={"inputs": inputs, "attention": True}).json()
    assert len(attention["texts"]) == 2
    body = {"inputs": {**inputs, "prompt": "red", "avoid": [texts[2]["text"]]}, "n": 3, "decoding": {"candidates": 9}}
    again = [text["text"] for text in client.post("/v1/ask", json=body).json()["texts"]]
    assert len({*again}) == 3 and (not texts[2]["text"] or texts[2]["text"] not in again)
    refused = error_of(client.post("/v1/ask", json={"inputs": {**inputs, "prompt": 3}}))
    assert refused[0] == 400 and refused[1].endswith("'prompt' must be a string or a list of strings, not 3")
