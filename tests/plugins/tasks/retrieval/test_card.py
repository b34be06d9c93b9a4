"""The card of vectors: their similarity."""

from mmgen_tasks.retrieval.config import Similarity

from mmgen.cards import Card
from mmgen.tensors import Example, Prediction
from mmgen.testing import RendererSuite

EXAMPLE = Example("a", {"caption": "a dog"})
PREDICTION = Prediction("a", {"image": [0.6, 0.8], "caption": [1.0, 0.0]}, 0.6)


class TestSimilarityCard(RendererSuite):
    def config(self):
        return Similarity()

    def examples(self):
        return [EXAMPLE]

    def predictions(self, examples):
        return [PREDICTION]


def test_the_similarity_is_shown_without_the_vectors():
    renderer = Similarity().build()
    assert renderer.line(EXAMPLE, PREDICTION) == "similarity of image and caption: 0.600"
    assert renderer.card(EXAMPLE, PREDICTION) == Card(line="similarity of image and caption: 0.600")
