"""For authors of plugins: conformance suites to subclass, and fakes that need no download and no network.

    import mmgen.testing
    from mmgen_audio import Audio

    class TestAudio(mmgen.testing.EmbedderSuite):
        def config(self):
            return Audio(fields=("audio",))

        def examples(self):
            return [Example("short", {"audio": "tests/short.wav"}), Example("long", {"audio": "tests/long.wav"})]

Run it with pytest. Every failure says what is wrong and what to do; the docstring of a suite's module says where the
contract is. A suite makes the same checks of a part's results as a run, and slower ones. Subclasses may add tests, but
cannot override any.
"""

from .backbone import BackboneSuite
from .data import DatasetSuite, ExtractorSuite, MetricSuite
from .embedder import EmbedderSuite
from .generator import GeneratorSuite
from .objective import ObjectiveSuite
from .suite import Suite
from .tiny import Tiny, TinyBackbone
from .toy import TEXTS, Greedy, Toy, ToyDataset, Words
from .watching import CallbackSuite, CommandSuite, ProbeSuite, RendererSuite

__all__ = [
    "TEXTS",
    "BackboneSuite",
    "CallbackSuite",
    "CommandSuite",
    "DatasetSuite",
    "EmbedderSuite",
    "ExtractorSuite",
    "GeneratorSuite",
    "Greedy",
    "MetricSuite",
    "ObjectiveSuite",
    "ProbeSuite",
    "RendererSuite",
    "Suite",
    "Tiny",
    "TinyBackbone",
    "Toy",
    "ToyDataset",
    "Words",
]
