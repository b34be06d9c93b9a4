"""The fake embedder that uses all options of a segment passes its suite."""

from kit.broken import CAPTIONS

import mmgen.testing
from mmgen.testing import Bag


class TestBag(mmgen.testing.EmbedderSuite):
    def config(self):
        return Bag()

    def examples(self):
        return CAPTIONS
