"""The card of vectors: the similarity of an example's two inputs."""

from __future__ import annotations

from mmgen.cards import Card
from mmgen.parts import Renderer
from mmgen.tensors import Prediction, ResolvedExample


class SimilarityCard(Renderer):
    """Shows the cosine similarity, and not the vectors."""

    def card(self, example: ResolvedExample, prediction: Prediction) -> Card:
        return Card(line=self.line(example, prediction))

    def line(self, example: ResolvedExample, prediction: Prediction) -> str:
        if len(prediction.value) == 1:
            return f"a vector of '{next(iter(prediction.value))}' alone"
        return f"similarity of {' and '.join(prediction.value)}: {prediction.score:.3f}"
