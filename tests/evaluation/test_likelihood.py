"""References' log-probabilities in a run, scored as perplexity; Python, command and service say the same of them."""

import json
import math

import pytest
from kit import served
from kit.toys import PLACE, mmgen_here, recipe
from mmgen_metrics import Likelihood
from mmgen_scenes import Scenes

import mmgen
from mmgen.examples import Example
from mmgen.examples import Likelihood as Measured
from mmgen.testing import MetricSuite


def measured(name, text, *values, **more):
    return Measured(name, text, (5, 1), sum(values) / 2, log_probabilities=values, **more)


class TestMetric(MetricSuite):
    def config(self):
        return Likelihood()

    def generations(self, examples):
        return [[measured(e.id, text, -0.25 * n, -0.75) for n, text in enumerate(e.targets)] for e in examples]


def test_the_kind_is_said():
    row = [measured("1", "a", -1.0, 0.0, kind="of one drawn order")]
    scores = Likelihood().score([row], [Example("1", {}, ("a",))])
    assert scores.notes == ("perplexity: of one drawn order",)
    assert scores.values["perplexity"] == pytest.approx(math.e**0.5)


@pytest.mark.slow
def test_metric_python_command_and_service_answer_alike(tmp_path, no_page):
    """The metric is added to a finished run, whose texts stay."""
    step, data = {"first": {"inputs": ["caption"], "train": ["backbone"]}}, {"train_size": 8, "test_size": 3}

    def run(**changes):
        (tmp_path / "toy.toml").write_text(recipe(steps=step, data=data, **changes))
        done = mmgen_here(tmp_path, "run", "toy.toml")
        assert done.returncode == 0, done.stderr
        return tmp_path / PLACE / "steps/first"

    folder = run()
    texts = (folder / "generations.jsonl").read_bytes()
    assert not (folder / "likelihoods.jsonl").exists()
    run(metrics={"meaning": {"type": "discovery"}, "likely": {"type": "likelihood"}})
    assert (folder / "generations.jsonl").read_bytes() == texts
    lines = [json.loads(line) for line in (folder / "likelihoods.jsonl").read_text().splitlines()]
    values = [value for line in lines for text in line for value in text["log_probabilities"]]
    scores = json.loads((folder / "scores.json").read_text())["values"]
    assert scores["perplexity"] == pytest.approx(math.exp(-sum(values) / len(values))) and "relevance" in scores
    totals = [[pytest.approx(sum(text["log_probabilities"]), abs=2e-4) for text in line] for line in lines]

    predictor = mmgen.load(tmp_path / PLACE, device="cpu")
    examples = Scenes(**data).build().split("test")
    queries = [{"caption": example.inputs["caption"][0]} for example in examples]
    asked = [{**query, "texts": e.targets, "id": e.id} for query, e in zip(queries, examples, strict=True)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in asked))
    done = mmgen_here(tmp_path, "likelihood", PLACE, "in.jsonl", "--out", "out.jsonl")
    assert done.returncode == 0, done.stderr
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    answers = [answer.as_json() for answer in predictor.likelihood_all(queries, [e.targets for e in examples])]
    blanks = predictor.fill(queries[0], "what [MASK]?", top=2).as_json()
    with served.client(predictor) as client:
        bodies = [{"inputs": query, "texts": e.targets} for query, e in zip(queries, examples, strict=True)]
        replies = [client.post("/v1/likelihood", json=body).json() for body in bodies]
        filled = client.post("/v1/fill", json={"inputs": queries[0], "text": "what [MASK]?", "top": 2}).json()
    for total, *alike in zip(totals, written, answers, replies, strict=True):
        for answer in alike:
            assert [text["log_probability"] for text in answer["texts"]] == total
            assert answer["texts"][0].keys() == {"text", "score", "log_probability", "tokens", "words"}
    assert [line["id"] for line in written] == [line[0]["id"] for line in lines]
    assert (filled["texts"], filled["blanks"]) == (blanks["texts"], blanks["blanks"])
    assert filled["reads"] == "what stands before"
    refused = mmgen_here(tmp_path, "score", "in.jsonl", "--references", "in.jsonl", "--metric", "likelihood")
    assert refused.stderr.startswith("error: --metric likelihood: a file of texts has no log-probabilities of")
