"""Samples of a step's answers in the terminal."""

from mmgen.registry import installed
from mmgen.report import samples
from mmgen.report.rendering import StepRenderer
from mmgen.tensors import Example, Generation


def test_text_samples_with_and_without_a_renderer():
    texts = [Generation("a", "what is it?", (), -1.0)]
    examples = [Example("a", {"caption": ("a dog", "a cat")})]
    plain = samples(texts, examples, StepRenderer())
    assert plain == f"    {'what is it?':42} <- a: a dog"
    config = installed().get("renderer", "vqa_card").config
    failed = samples(texts, examples, StepRenderer(config))
    assert failed.startswith(f"{plain}\nrenderer (vqa_card, mmgen-framework ")
