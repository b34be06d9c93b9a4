"""The renderer of a step, renderers of third parties, and the fallback if none fits or one fails."""

import pytest
from kit.asked import recipe_text, registry
from mmgen_inputs import Text

from mmgen.cards import Bar, Card
from mmgen.errors import PluginError
from mmgen.examples import Example, Generation, Prediction, ResolvedExample
from mmgen.recipe.load import load
from mmgen.registry import collect, installed
from mmgen.report import samples
from mmgen.report.rendering import StepRenderer, step_renderer

PACKAGE = """
    from typing import Literal
    import mmgen
    from mmgen.cards import Bar, Card
    from mmgen.parts import Renderer

    class Mine(mmgen.RendererConfig):
        "Theirs."
        type: Literal["mine"] = "mine"
        renders = frozenset({"label"})
        required_labels = LABELS
        datasets = DATASETS

        def build(self):
            return Shown()

    class Shown(Renderer):
        def card(self, example, prediction):
            CARD

        def line(self, example, prediction):
            LINE

    @mmgen.hookimpl
    def register_renderers():
        return [Mine]
"""


LABEL = Prediction("test-0", {"label": "red", "probabilities": {"red": 0.7}}, 0.7)


EXAMPLE = ResolvedExample("test-0", {"question": "what is it?"}, (), {}, {"answers": {"red": 1.0}})


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    path = tmp_path_factory.mktemp("rendering") / "toy.toml"
    path.write_text(recipe_text())
    return load(path, registry())[0]


@pytest.fixture
def package(site):
    """Installs a third party's renderer."""

    def install(labels=(), datasets=(), card="return Card(line='mine')", line="return 'mine'"):
        filled = {"LABELS": repr(labels), "DATASETS": repr(datasets), "CARD": card, "LINE": line}
        code = PACKAGE
        for name, text in filled.items():
            code = code.replace(name, text)
        site("mmgen-mine", "mmgen_mine", code)

    return install


def test_every_task_has_its_renderer(recipe):
    shown = {step: step_renderer(recipe, step).config.model_fields["type"].default for step in recipe.steps}
    assert shown == {
        "answers": "label_card",
        "answers_blind": "label_card",
        "pairs": "label_card",
        "choices": "choice_card",
        "choices_blind": "choice_card",
        "expressions": "region_card",
        "expressions_blind": "region_card",
        "phrases": "boxes_card",
    }


def test_texts_whose_words_name_objects_use_vcrs_renderer(tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(
        'name = "toy"\n[backbone]\ntype = "bert"\n[inputs.question]\ntype = "text"\n[generator]\ntype = "masked"\n'
        '[steps.words]\ninputs = ["question"]\ntrain = ["backbone"]\n[data]\ntype = "scene_choices"\n'
    )
    config = step_renderer(load(path, installed())[0], "words").config
    assert config.model_fields["type"].default == "vcr_texts_card"


def test_without_a_renderer_predictions_are_shown_as_json(recipe):
    fallback = step_renderer(recipe, "answers", collect([]))
    assert fallback.config is None
    assert fallback.card(EXAMPLE, LABEL) == Card(line='{"label": "red", "probabilities": {"red": 0.7}}', confidence=0.7)
    assert fallback.line(EXAMPLE, LABEL) == '{"label": "red", "probabilities": {"red": 0.7}}'
    text = Generation("test-0", "what is it?", (), -1.0)
    assert fallback.card(EXAMPLE, text) == Card() and fallback.line(EXAMPLE, text) == "what is it?"


def test_a_renderer_for_specific_labels_beats_one_for_any_label(recipe, package):
    package(labels=("answers",))
    assert step_renderer(recipe, "answers").card(EXAMPLE, LABEL) == Card(line="mine")


def test_a_renderer_for_a_data_set_wins(recipe, package):
    package(datasets=("asked_answers",))
    assert step_renderer(recipe, "answers").card(EXAMPLE, LABEL) == Card(line="mine")
    assert step_renderer(recipe, "pairs").config.model_fields["type"].default == "label_card"


def test_a_renderer_for_labels_that_the_objective_does_not_use_does_not_fit(recipe, package):
    package(labels=("answers", "mood"), datasets=("asked_answers",))
    assert step_renderer(recipe, "answers").config.model_fields["type"].default == "label_card"


def test_two_equally_good_renderers_are_an_error_of_their_step_only(recipe, package):
    package(labels=("truth",))
    assert step_renderer(recipe, "answers").card(EXAMPLE, LABEL).bars == (Bar("red", 0.7, chosen=True, right=True),)
    package()
    with pytest.raises(PluginError, match="step 'answers': two renderers fit: "):
        step_renderer(recipe, "answers")
    assert step_renderer(recipe, "choices").config.model_fields["type"].default == "choice_card"


@pytest.mark.parametrize(
    "card, reason",
    [
        ("raise KeyError('size')", "mmgen-mine 0.3, Shown.card (mmgen_mine.py:19): KeyError: 'size'"),
        ("return {'line': 'red'}", """TypeError("returned {'line': 'red'}; expected Card")"""),
    ],
)
def test_a_failing_renderer_is_named_and_loses_only_its_card(recipe, package, card, reason):
    package(datasets=("asked_answers",), card=card)
    renderer = step_renderer(recipe, "answers")
    for _ in range(2):
        shown = renderer.card(EXAMPLE, LABEL)
        assert shown == Card(line='{"label": "red", "probabilities": {"red": 0.7}}', confidence=0.7)
    (note,) = renderer.notes
    assert note.startswith(f"renderer 'mine': card of 'test-0': {reason}")
    assert note.endswith("; its answers are shown as JSON") and renderer.line(EXAMPLE, LABEL) == "mine"


CAPTION = Text(fields=("caption",))


def test_samples_in_the_terminal():
    """Texts beside a text that the step reads, or else one of people's; predictions beside all; notes of a renderer."""
    texts = [Generation("a", "what is it?", (), -1.0)]
    examples = [Example("a", {"image": ("photo 1", "photo 2"), "caption": ("a dog", "a cat")}, ("who?",))]
    plain = samples(texts, examples, StepRenderer(), [CAPTION])
    assert plain == f"    {'what is it?':42} <- a: a dog"
    assert samples(texts, examples, StepRenderer(), []).endswith(" <- a: (people: who?)")
    failing = StepRenderer(installed().get("renderer", "label_card").config)
    assert samples(texts, examples, failing, [CAPTION]).startswith(f"{plain}\nrenderer 'label_card': ")
    asked = [Example("test-0", {"image": "my photo", "question": "why?"})]
    assert samples([LABEL], asked, StepRenderer(), [Text(fields=("question",))]).endswith(" <- test-0: why?")
