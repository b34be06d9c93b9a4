"""Recipe keys of retrieval."""

from mmgen_tasks.retrieval.config import Retrieval, Similarity
from mmgen_tasks.retrieval.metric import RetrievalMetric


def test_the_metric_scores_vectors_of_the_named_inputs():
    metric = Retrieval(image="photo", caption="text").build()
    assert isinstance(metric, RetrievalMetric)
    assert Retrieval.judges == Similarity.renders == {"vectors"}
