"""References' log-probabilities in a run: written beside the texts, added to a finished run, scored as perplexity."""

import json
import math

import pytest
from kit.toys import PLACE, mmgen_here, recipe
from mmgen_metrics import Likelihood

from mmgen.examples import Example
from mmgen.examples import Likelihood as Measured
from mmgen.testing import MetricSuite


class TestMetric(MetricSuite):
    def config(self):
        return Likelihood()

    def generations(self, examples):
        return [
            [
                Measured(e.id, text, (5, 1), -0.5, log_probabilities=(-0.25 * n, -0.75))
                for n, text in enumerate(e.targets)
            ]
            for e in examples
        ]


@pytest.mark.slow
def test_a_metric_that_judges_likelihoods_may_be_added_to_a_finished_run(tmp_path, no_page):
    step = {"first": {"inputs": ["caption"], "train": ["backbone"]}}

    def run(**changes):
        (tmp_path / "toy.toml").write_text(recipe(steps=step, data={"train_size": 8, "test_size": 3}, **changes))
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

    (tmp_path / "texts.jsonl").write_text('{"id": "1", "text": "a"}')
    refused = mmgen_here(tmp_path, "score", "texts.jsonl", "--references", "texts.jsonl", "--metric", "likelihood")
    assert refused.stderr.startswith("error: --metric likelihood: a file of texts has no log-probabilities of")


def test_the_kind_is_said():
    measured = Measured("1", "a", (5, 1), -0.5, log_probabilities=(-1.0, 0.0), kind="of one drawn order")
    scores = Likelihood().build().score([[measured]], [Example("1", {}, ("a",))])
    assert scores.notes == ("perplexity: of one drawn order",)
    assert scores.values["perplexity"] == pytest.approx(math.e**0.5)
