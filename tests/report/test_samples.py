"""Samples of a step's answers in the terminal."""

from mmgen_inputs import Text

from mmgen.examples import Example, Generation, Prediction
from mmgen.registry import installed
from mmgen.report import samples
from mmgen.report.rendering import StepRenderer

CAPTION = Text(fields=("caption",))


def test_text_samples_with_and_without_a_renderer():
    texts = [Generation("a", "what is it?", (), -1.0)]
    examples = [Example("a", {"caption": ("a dog", "a cat")})]
    plain = samples(texts, examples, StepRenderer(), [CAPTION])
    assert plain == f"    {'what is it?':42} <- a: a dog"
    config = installed().get("renderer", "vqa_card").config
    failed = samples(texts, examples, StepRenderer(config), [CAPTION])
    assert failed.startswith(f"{plain}\nrenderer 'vqa_card': ")


def test_an_input_says_what_its_texts_are():
    """A key may have spaces, and a text none."""
    example = Example("a", {"image": "my photo", "question": "why?"})
    answer = Prediction("a", {"label": "so"}, 0.5)
    assert samples([answer], [example], StepRenderer(), [Text(fields=("question",))]).endswith(" <- a: why?")
    pictures = Example("b", {"image": ("photo-1", "photo-2"), "caption": "a dog"}, ("what is it?",))
    text = Generation("b", "who?", (), -1.0)
    assert samples([text], [pictures], StepRenderer(), [CAPTION]).endswith(" <- b: a dog")
    assert samples([text], [pictures], StepRenderer(), []).endswith(" <- b: (people: what is it?)")
