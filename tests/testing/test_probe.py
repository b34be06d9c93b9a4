"""The suite of probes: a good one passes, and each typical mistake is caught in words."""

import json
from pathlib import Path
from typing import Literal

import pytest

import mmgen
from mmgen.errors import DataError
from mmgen.parts import Probe, ProbeResult
from mmgen.testing import ProbeSuite, failures

pytestmark = pytest.mark.slow


class Sure(Probe):
    """A good one."""

    def run(self, subject, out):
        if not subject.examples:
            raise DataError("sure: there are no examples to look at")
        rows = [["step", "surest"]]
        for step in subject.steps:
            written = step.generate(step.load(), subject.examples)
            rows.append([step.name, max(text.score for (text,) in written)])
        (out / "table.json").write_text(json.dumps(rows))
        (out / "plot.svg").write_text("<svg/>")
        return ProbeResult({"How sure": rows}, {"How sure": "plot.svg"})


def suite(make) -> type[ProbeSuite]:
    class Config(mmgen.ProbeConfig):
        """How sure."""

        type: Literal["sure"] = "sure"

        def build(self):
            return make()

    return type("TestProbe", (ProbeSuite,), {"config": lambda self: Config()})


def changed(change) -> type[ProbeSuite]:
    """The suite of a probe that does `change(model of a step, out)` when it is done, and returns what that gives."""

    class Changed(Sure):
        def run(self, subject, out):
            result = super().run(subject, out)
            return change(subject.steps[0].load(), out) or result

    return suite(Changed)


def train(model, out):
    model.train()


def nudge(model, out):
    model.backbone.words.weight.data += 1


def learn(model, out):
    model.backbone.words.weight.sum().backward()


def hook(model, out):
    model.backbone.layers[0].register_forward_hook(lambda *_: None)


def freeze(model, out):
    model.requires_grad_(False)


def stray(model, out):
    Path("stray.txt").write_text("here")


def remove(model, out):
    for path in out.iterdir():
        path.unlink()


def empty(model, out):
    (out / "table.json").write_text("")


def place(model, out):
    return ProbeResult({"table": [["file"], [str(out / "table.json")]]})


def nothing(model, out):
    return ProbeResult(notes=("there is nothing",))


def uneven(model, out):
    return ProbeResult({"How sure": [["step", "surest"], ["one"]]})


def missing(model, out):
    return ProbeResult(plots={"How sure": "other.svg"})


def table(model, out):
    return {"surest": 1.0}


def tensor(model, out):
    return ProbeResult({"weights": [["weight"], [model.backbone.words.weight]]})


def count(model, out, runs=[0]):  # noqa: B006  # that it remembers is the mistake
    runs[0] += 1
    return ProbeResult({"runs": [["runs"], [runs[0]]]})


@pytest.mark.parametrize(
    "change, test, words",
    [
        (train, "test_models_stay_unchanged", "run leaves the model in training mode; restore eval mode"),
        (nudge, "test_models_stay_unchanged", "run changes backbone.words.weight"),
        (
            learn,
            "test_models_stay_unchanged",
            "run leaves gradients on backbone.words.weight; clear them",
        ),
        (hook, "test_models_stay_unchanged", "run leaves hooks on backbone.layers.0; remove them"),
        (
            freeze,
            "test_models_stay_unchanged",
            "run changes requires_grad of parameters; restore it",
        ),
        (
            stray,
            "test_writes_only_into_its_folder",
            "run writes stray.txt into the current folder; write only into `out`",
        ),
        (remove, "test_result", "run leaves no file in `out`; write the tables and pictures there"),
        (empty, "test_result", "table.json is empty"),
        (
            place,
            "test_result",
            "the result of run has the path of `out`, which may move; name files relative to `out`",
        ),
        (
            tensor,
            "test_result",
            "the result of run cannot be written as JSON (TypeError: Object of type Parameter is not JSON "
            "serializable)",
        ),
        (table, "test_result", "run returns {'surest': 1.0}; expected a ProbeResult"),
        (nothing, "test_result", "run returns neither tables nor plots"),
        (uneven, "test_result", "the table 'How sure' needs a header and rows of the same length"),
        (missing, "test_result", "the plot 'other.svg' is not an SVG file in `out`"),
        (
            count,
            "test_is_deterministic",
            "with the same seed of torch, run returns a different result the second time",
        ),
    ],
)
def test_a_broken_probe_is_caught_in_words(change, test, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError) as caught:
        getattr(changed(change)(), test)()
    assert str(caught.value) == words


def test_a_good_one_passes():
    assert failures(suite(Sure)) == {}


def test_no_examples_must_not_be_a_crash():
    class Careless(Sure):
        def run(self, subject, out):
            return (
                super().run(subject, out)
                if subject.examples
                else ProbeResult({"mean": [["mean"], [0 / len(subject.examples)]]})
            )

    assert failures(suite(Careless)) == {
        "test_without_examples": "without examples, run must return a result, or raise a "
        "DataError or an UnavailableError that says why (ZeroDivisionError: division by zero)"
    }
