"""The fake generator that writes the likeliest next token passes its suite."""

from mmgen.testing import GeneratorSuite, Greedy


class TestGreedy(GeneratorSuite):
    def config(self):
        return Greedy()
