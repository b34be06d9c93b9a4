"""The suite of probes: a good one passes, and each typical mistake is caught in words."""

import json
from pathlib import Path
from typing import Literal

import pytest

import mmgen
from mmgen.errors import DataError
from mmgen.parts import Probe
from mmgen.testing import GeneratorSuite, Greedy, ProbeSuite, failures


class Sure(Probe):
    """A good one."""

    def run(self, model, examples, out):
        if not examples:
            raise DataError("sure: there are no examples to look at")
        told = {text.id: text.score for (text,) in model.generate(examples)}
        (out / "table.json").write_text(json.dumps(told))
        return {"examples": len(told)}


def suite(make) -> type[ProbeSuite]:
    class Config(mmgen.ProbeConfig):
        """How sure."""

        type: Literal["sure"] = "sure"

        def build(self):
            return make()

    return type("TestProbe", (ProbeSuite,), {"config": lambda self: Config()})


def changed(change) -> type[ProbeSuite]:
    """The suite of a probe that does `change(model, examples, out, told)` when it is done."""

    class Changed(Sure):
        def run(self, model, examples, out):
            told = super().run(model, examples, out)
            return change(model, examples, out, told) or told

    return suite(Changed)


def train(model, examples, out, told):
    model.train()


def nudge(model, examples, out, told):
    model.backbone.words.weight.data += 1


def learn(model, examples, out, told):
    model.backbone.words.weight.sum().backward()


def hook(model, examples, out, told):
    model.backbone.layers[0].register_forward_hook(lambda *_: None)


def freeze(model, examples, out, told):
    model.requires_grad_(False)


def stray(model, examples, out, told):
    Path("stray.txt").write_text("here")


def remove(model, examples, out, told):
    (out / "table.json").unlink()


def empty(model, examples, out, told):
    (out / "table.json").write_text("")


def place(model, examples, out, told):
    return {"table": str(out / "table.json")}


def tensor(model, examples, out, told):
    return {"weights": model.backbone.words.weight}


def count(model, examples, out, told, runs=[0]):  # noqa: B006  # that it remembers is the mistake
    runs[0] += 1
    return {"runs": runs[0]}


@pytest.mark.parametrize(
    "change, test, words",
    [
        (train, "test_the_model_stays_as_it_was", "run leaves the model in training mode; put it back as it was"),
        (nudge, "test_the_model_stays_as_it_was", "run changes backbone.words.weight"),
        (
            learn,
            "test_the_model_stays_as_it_was",
            "run leaves gradients, of backbone.words.weight among others; clear them",
        ),
        (hook, "test_the_model_stays_as_it_was", "run leaves hooks on backbone.layers.0; remove them"),
        (
            freeze,
            "test_the_model_stays_as_it_was",
            "run changes which parameters learn (requires_grad); put them back as they were",
        ),
        (
            stray,
            "test_it_writes_into_its_folder_alone",
            "run writes stray.txt into the current folder; write into `out` alone",
        ),
        (remove, "test_what_it_tells", "run leaves no file in `out`; write the tables and pictures there"),
        (empty, "test_what_it_tells", "table.json is empty"),
        (
            place,
            "test_what_it_tells",
            "what run returns names the folder `out`, which may move; name files relative to it",
        ),
        (
            tensor,
            "test_what_it_tells",
            "what run returns cannot be written as JSON: Object of type Parameter is not JSON serializable",
        ),
        (count, "test_the_same_twice", "with torch's generator seeded alike, run tells something else the second time"),
    ],
)
def test_a_broken_probe_is_caught_in_words(change, test, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert failures(changed(change))[test] == f"{words}. Read: mmgen.parts.Probe.run"


def test_a_good_one_passes():
    assert failures(suite(Sure)) == {}


def test_no_examples_must_not_be_a_crash():
    class Careless(Sure):
        def run(self, model, examples, out):
            (out / "table.json").write_text(
                json.dumps(sum(text.score for (text,) in model.generate(examples)) / len(examples))
            )
            return {"examples": len(examples)}

    assert failures(suite(Careless)) == {
        "test_what_cannot_be_had_is_said": "without examples, run raises ZeroDivisionError: division by zero; "
        "raise a DataError or an UnavailableError that says why. Read: mmgen.parts.Probe.run"
    }


class TestGreedy(GeneratorSuite):
    """The fake generator that probes are tried with is a generator."""

    def config(self):
        return Greedy()
