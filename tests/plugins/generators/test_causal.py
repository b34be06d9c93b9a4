"""The generator passes mmgen's suite; tests/test_sequence.py compares its steps with rows written out by hand."""

from mmgen_generators import Causal

from mmgen.testing import GeneratorSuite


class TestCausal(GeneratorSuite):
    def config(self):
        return Causal(max_tokens=10)
