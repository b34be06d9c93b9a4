"""Packages of third parties, written from the docs alone: each passes the suite of its kind."""

from packages.diffusion import Denoising, Diffusion

from mmgen.testing import GeneratorSuite


class TestDiffusion(GeneratorSuite):
    def config(self):
        return Diffusion(max_tokens=12)

    def decodings(self):
        return Denoising(steps=2), Denoising(order="random"), Denoising(temperature=1.0, num_return_sequences=3)
