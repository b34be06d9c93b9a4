"""Scores: columns of metrics; what people's texts and chance score, once for each metric and data."""

from types import SimpleNamespace
from typing import Literal

from kit.refusals import refusal
from mmgen_metrics import CaptionScores, Diversity

from mmgen.configs import MetricConfig
from mmgen.evaluation.score import FILE, merge_metrics, reference_scores, references_of_others
from mmgen.examples import Example, Scores
from mmgen.parts import Metric

ROWS = [("a", "is the dog red ?", "is it big ?"), ("a", "what is it ?"), ("b", "how deep is the sea ?"), ("c", "who ?")]


def recipe_of(**judging):
    """A recipe whose steps write texts, and are scored by these metrics."""
    return SimpleNamespace(judging=lambda _: judging, makes_texts=lambda _: True, scored_data=lambda _: None)


def scored_by(*examples):
    return SimpleNamespace(scored_by=lambda _: examples)


def test_chance_is_what_references_of_other_pictures_score(tmp_path):
    examples = [Example(str(n), {"image": image}, texts) for n, (image, *texts) in enumerate(ROWS)]
    others = references_of_others(examples)
    pictures = {text: image for image, *texts in ROWS for text in texts}
    assert all(pictures[text.text] != example.inputs["image"] for text, example in zip(others, examples, strict=True))
    overlap, variety = CaptionScores(tokenizer="own", meteor=False), Diversity()
    recipe = recipe_of(overlap=overlap, variety=variety)
    scores = reference_scores(recipe, ["words"], scored_by(*examples), tmp_path)["words"]
    chance = {name.removeprefix("chance_"): value for name, value in scores["overlap"].values.items()}
    assert chance == overlap.build().score(others, examples).values
    assert not any(name.startswith("chance_") for name in scores["variety"].values)  # says nothing about a picture
    assert "chance of overlap: the reference of another picture for each example" in scores["overlap"].notes


class OnDevice(Metric):
    scored = 0  # times

    def prepare(self, pictures, device):
        self.device = device

    def score(self, generations, examples):
        return Scores({})

    def references(self, examples):
        OnDevice.scored += 1
        return Scores({"fit": 90.0, f"chance_{self.device.type}": 10.0}, {}, ("a note",))


class Fit(MetricConfig):
    type: Literal["fit"] = "fit"
    needs_device = True
    size: int = 1

    def build(self):
        return OnDevice()


def test_references_are_scored_once_for_each_metric_and_its_data(tmp_path, monkeypatch):
    monkeypatch.setattr(OnDevice, "scored", 0)
    metrics, own = {"fit": Fit()}, {}
    recipe = recipe_of()
    recipe.judging, recipe.scored_data = (lambda _: metrics), own.get

    def scores(folder):
        return reference_scores(recipe, ["first", "second"], scored_by(Example("1", {}, ("x",))), folder)

    first = scores(tmp_path)
    assert first["first"] == first["second"] == {"fit": Scores({"fit": 90.0, "chance_cpu": 10.0}, {}, ("a note",))}
    assert scores(tmp_path) == first and OnDevice.scored == 1
    metrics["fit"] = Fit(size=2)
    assert scores(tmp_path) == scores(tmp_path) == first and OnDevice.scored == 2
    own["second"] = Fit()  # any config
    assert scores(tmp_path) == first and OnDevice.scored == 3
    (tmp_path / FILE).write_text('{"key": {"values": {"fit": "90"}}}')
    assert "damaged: key.values.fit: must be a number" in refusal(scores, tmp_path)


def test_a_metric_that_needs_pictures_is_left_out_unless_it_is_built(tmp_path):
    class Seeing(Fit):
        needs_pictures = True

    def scores(**built):
        return reference_scores(recipe_of(seeing=Seeing()), ["first"], scored_by(Example("1", {})), tmp_path, built)

    metric = OnDevice()
    metric.prepare(None, SimpleNamespace(type="cuda"))
    assert scores() == {"first": {}}
    built = scores(seeing=metric)
    assert built["first"]["seeing"].values == {"fit": 90.0, "chance_cuda": 10.0} and scores() == built


def test_two_metrics_of_one_type_have_separate_columns():
    first, second = Scores({"bleu": 1.0, "only": 3.0}, {"bleu": [1.0]}, ("a",)), Scores({"bleu": 2.0}, {}, ("a",))
    assert merge_metrics({"short": first, "long": second}) == Scores(
        {"short.bleu": 1.0, "only": 3.0, "long.bleu": 2.0}, {"short.bleu": [1.0]}, ("a",)
    )
