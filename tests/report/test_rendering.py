"""The renderer of a step, renderers of third parties, and the fallback if none fits or one fails."""

import pytest
from kit.asked import recipe_text, registry
from mmgen_inputs import Text

from mmgen.cards import Card
from mmgen.errors import PluginError
from mmgen.examples import Example, Generation, Prediction, ResolvedExample
from mmgen.recipe.load import load
from mmgen.report import samples
from mmgen.report.rendering import PlainRenderer, step_renderer

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
        type = "mine"

        def card(self, example, prediction):
            return Card(line='mine')

        def line(self, example, prediction):
            return 'mine'

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

    def install(labels=(), datasets=()):
        site("mmgen-mine", "mmgen_mine", PACKAGE.replace("LABELS", repr(labels)).replace("DATASETS", repr(datasets)))

    return install


def test_without_a_renderer_predictions_are_shown_as_json():
    plain = PlainRenderer()
    assert plain.card(EXAMPLE, LABEL) == Card(line='{"label": "red", "probabilities": {"red": 0.7}}', confidence=0.7)
    assert plain.line(EXAMPLE, LABEL) == '{"label": "red", "probabilities": {"red": 0.7}}'
    text = Generation("test-0", "what is it?", (), -1.0)
    assert plain.card(EXAMPLE, text) == Card() and plain.line(EXAMPLE, text) == "what is it?"


@pytest.mark.parametrize(
    ("labels", "datasets", "kind"),
    [
        (("answers",), (), "mine"),  # beats one for any label
        ((), ("asked_answers",), "mine"),
        (("answers", "mood"), ("asked_answers",), "label_card"),  # the objective does not use all of its labels
    ],
)
def test_the_renderer_that_is_made_for_the_step_wins(recipe, package, labels, datasets, kind):
    package(labels, datasets)
    assert step_renderer(recipe, "answers").type == kind and step_renderer(recipe, "pairs").type == "label_card"


def test_two_equally_good_renderers_are_an_error_of_their_step_only(recipe, package):
    package()  # as good as that of the tasks, for steps without one for their labels
    with pytest.raises(PluginError, match="step 'answers': two renderers fit: "):
        step_renderer(recipe, "answers")
    assert step_renderer(recipe, "choices").type == "choice_card"


CAPTION = Text(fields=("caption",))


def test_samples_in_the_terminal():
    """Texts beside a text that the step reads, or else one of people's; predictions beside all."""
    texts = [Generation("a", "what is it?", (), -1.0)]
    examples = [Example("a", {"image": ("photo 1", "photo 2"), "caption": ("a dog", "a cat")}, ("who?",))]
    assert samples(texts, examples, PlainRenderer(), [CAPTION]) == f"    {'what is it?':42} <- a: a dog"
    assert samples(texts, examples, PlainRenderer(), []).endswith(" <- a: (people: who?)")
    asked = [Example("test-0", {"image": "my photo", "question": "why?"})]
    assert samples([LABEL], asked, PlainRenderer(), [Text(fields=("question",))]).endswith(" <- test-0: why?")
