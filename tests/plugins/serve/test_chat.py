"""Chat completions in the shape of OpenAI's interface."""

import json

import pytest
from kit import served


def message(*texts: str, pictures: int = 1) -> dict:
    url = f"data:image/png;base64,{served.encoded()}"
    content = [{"type": "image_url", "image_url": {"url": url, "detail": "low"}} for _ in range(pictures)]
    return {"role": "user", "content": content + [{"type": "text", "text": text} for text in texts]}


def chat(client, *texts: str, **fields):
    body = {"model": "served/both", "messages": [message(*texts)], **fields}
    return client.post("/v1/chat/completions", json=body)


def test_choices_are_different_texts(client, predictor):
    body = chat(client, "a red dog", n=3, stop=None, user="u", logprobs=False).json()
    expected = predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=3).texts
    assert [choice["message"]["content"] for choice in body["choices"]] == [text.text for text in expected]
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2] and body["object"] == "chat.completion"
    end = predictor.model.backbone.end_id
    reasons = ["stop" if text.tokens[-1] == end else "length" for text in expected]
    assert [choice["finish_reason"] for choice in body["choices"]] == reasons
    usage = body["usage"]
    assert usage["completion_tokens"] == sum(len(text.tokens) for text in expected)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] and usage["prompt_tokens"] > 3


def test_a_stream_is_one_event(client):
    response = chat(client, "a red dog", stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    event, done, rest = response.text.split("\n\n")
    chunk = json.loads(event.removeprefix("data: "))
    assert (done, rest, chunk["object"]) == ("data: [DONE]", "", "chat.completion.chunk")
    (choice,) = chat(client, "a red dog").json()["choices"]
    assert chunk["choices"][0]["delta"]["content"] == choice["message"]["content"]


def test_temperature_samples_and_zero_does_not(client):
    first = chat(client, "a dog", temperature=2.0, seed=3).json()["choices"]
    assert chat(client, "a dog", temperature=2.0, seed=3).json()["choices"] == first
    greedy = chat(client, "a dog").json()["choices"]
    assert chat(client, "a dog", temperature=0).json()["choices"] == greedy


def test_a_text_beside_the_message(client):
    by_name = chat(client, inputs={"caption": "a red dog"}).json()["choices"]
    assert by_name == chat(client, "a red dog").json()["choices"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"messages": [{"role": "system", "content": "be kind"}, message("x")]},
            "messages: the model reads one message of the user, and remembers none; send only that",
        ),
        ({"messages": []}, "messages: must not be empty"),
        ({"messages": [{"role": "user", "content": 7}]},
         'messages[0].content: must be a text, or a list of parts such as {"type": "text", "text": "two red tents"}'),
        ({"messages": [{"role": "user", "content": [7]}]},
         'messages[0].content: must be a text, or a list of parts such as {"type": "text", "text": "two red tents"}'),
        ({"messages": [{"role": "user"}]}, "messages[0].content: is missing"),
        ({"messages": [{"role": "user", "content": "x", "words": 1}]}, "messages[0].words: no such key"),
        ({"messages": "hello"}, 'messages: must be a list, [...], not "hello"'),
        ({"messages": [{"role": "user", "content": [{"type": "input_audio"}]}]},
         'messages: parts are {"type": "text"} and {"type": "image_url"}'),
        ({"messages": [message("x", pictures=5)]}, "messages: 5 pictures; the limit is 4"),
        ({"inputs": {"caption": "y"}}, "messages: the model has 0 inputs for a text; leave the text out"),
        ({"tools": [{"type": "function"}]}, "tools: this model has no such option; leave it out"),
        ({"frequency_penalty": 0.5}, "frequency_penalty: this model has no such option; leave it out"),
        ({"max_tokens": 2}, "max_tokens: the model writes at most 6 tokens and is not cut; leave it out"),
        ({"temperature": 3}, "temperature: must be at most 2, not 3"),
        ({"model": "gpt-4"}, "model: 'gpt-4' does not exist; the model is 'served/both'"),
        ({"seed": 1}, "seed: has an effect only on a decoding that samples; leave it out"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.org/a.png"}}]}]},
         "messages.image_url: must be a data: URL with base64; addresses are never fetched"),
    ],
)  # fmt: skip
def test_what_the_model_cannot_do_is_refused(client, fields, text):
    response = chat(client, "a red dog", **fields)
    assert response.json()["error"]["message"] == text and response.status_code in (400, 404)


def test_sampling_has_no_beams(predictor, monkeypatch):
    decoding = predictor.recipe.decoding.model_copy(update={"num_beams": 2})
    monkeypatch.setattr(predictor, "recipe", predictor.recipe.model_copy(update={"decoding": decoding}))
    with served.client(predictor) as client:
        assert len(chat(client, "a dog", temperature=1.0, seed=3, n=3).json()["choices"]) == 3


def test_openais_client_works_unchanged(predictor):
    openai = pytest.importorskip("openai", reason="needs OpenAI's client")
    from kit.servers import running

    with running(predictor) as address:
        client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)
        expected = [
            text.text for text in predictor.ask({"picture": served.picture(), "caption": "a red dog"}, n=2).texts
        ]
        done = client.chat.completions.create(model="served/both", messages=[message("a red dog")], n=2)
        assert [choice.message.content for choice in done.choices] == expected and done.usage.completion_tokens
        chunks = client.chat.completions.create(model="served/both", messages=[message("a red dog")], n=2, stream=True)
        assert [choice.delta.content for chunk in chunks for choice in chunk.choices] == expected
        assert [model.id for model in client.models.list()] == ["served/both"]
        with pytest.raises(openai.BadRequestError, match="the model writes at most 6 tokens"):
            client.chat.completions.create(model="served/both", messages=[message("a dog")], max_tokens=1)
        with pytest.raises(openai.NotFoundError, match="'gpt-4' does not exist"):
            client.chat.completions.create(model="gpt-4", messages=[message("a dog")])
