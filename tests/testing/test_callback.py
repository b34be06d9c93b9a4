"""The suite of callbacks catches what would change a run."""

from typing import Literal

import pytest
import torch
from pydantic import Field

from mmgen.configs import CallbackConfig
from mmgen.parts import Callback
from mmgen.testing import CallbackSuite


class Draws(CallbackConfig):
    """Draws a number for every update."""

    type: Literal["draws"] = "draws"
    seeded: bool = Field(True, description="whether it has a generator of its own")

    def build(self):
        return Drawing(torch.Generator() if self.seeded else None)


class Drawing(Callback):
    def __init__(self, generator):
        self.generator = generator

    def on_update(self, step, record):
        torch.rand(1, generator=self.generator)


class TestSeeded(CallbackSuite):
    def config(self):
        return Draws()


class Global(CallbackSuite):
    def config(self):
        return Draws(seeded=False)


def test_a_callback_that_draws_from_the_generator_of_training_is_caught():
    with pytest.raises(AssertionError, match="^the callback draws from torch's global generator, from which training"):
        Global().test_the_random_numbers_of_training_stay()
