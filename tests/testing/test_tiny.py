"""The fake backbone passes its suite."""

import mmgen.testing
from mmgen.testing import Tiny


class TestTiny(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny()


class TestTinyWithMoreRows(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny(types=3, extra_positions=2)
