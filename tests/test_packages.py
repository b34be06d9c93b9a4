"""Packages of third parties, written from the docs alone: each passes the suite of its kind."""

import pytest
from kit.toys import mmgen_here, recipe
from mmgen_causal import Causal
from mmgen_masked import Masked
from packages.any_order import AnyOrder, Ordered
from packages.diffusion import Denoising, Diffusion
from packages.distillation import Distillation
from packages.encoders import CachedEuroBert, DebertaV2, EuroBert
from packages.pixels import Pixels
from packages.recurrent import Alone, Gru
from PIL import Image

from mmgen.errors import PluginError
from mmgen.model import compose
from mmgen.tensors import Example
from mmgen.testing import TEXTS, BackboneSuite, EmbedderSuite, GeneratorSuite, ObjectiveSuite, Words


class TestDiffusion(GeneratorSuite):
    def config(self):
        return Diffusion(max_tokens=12)

    def decodings(self):
        return Denoising(steps=2), Denoising(order="random"), Denoising(temperature=1.0, num_return_sequences=3)


@pytest.mark.exhaustive
class TestAnyOrder(GeneratorSuite):
    def config(self):
        return AnyOrder(max_tokens=10)

    def decodings(self):
        return Ordered(order="left"), Ordered(order="random")


class FromSource(BackboneSuite):
    def source_logits(self, backbone, ids):
        return backbone.model(input_ids=ids).logits


@pytest.mark.exhaustive
class TestEuroBert(FromSource):
    def config(self):
        return EuroBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100)


@pytest.mark.exhaustive
class TestCachedEuroBert(FromSource):
    def config(self):
        return CachedEuroBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100)


@pytest.mark.exhaustive
class TestDebertaV2(FromSource):
    def config(self):
        return DebertaV2(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100)


class TestDistillation(ObjectiveSuite):
    def config(self):
        return Distillation()


class TestPixels(EmbedderSuite):
    @pytest.fixture(autouse=True)
    def draw(self, tmp_path):
        self.paths = [tmp_path / "red.png", tmp_path / "blue.png"]
        for path in self.paths:
            Image.new("RGB", (40, 30), path.stem).save(path)

    def config(self):
        return Pixels(fields=("photo",))

    def examples(self):
        return [Example(path.stem, {"photo": str(path)}) for path in self.paths]


class TestGru(BackboneSuite):
    def config(self):
        return Gru(hidden_size=24)


@pytest.mark.exhaustive
class TestAlone(BackboneSuite):
    def config(self):
        return Alone(hidden_size=24)


def test_a_recurrent_network_trains_and_writes_with_the_causal_generator():
    config = Gru(hidden_size=48)

    class Suite(GeneratorSuite):
        def config(self):
            return Causal(max_tokens=12)

        def backbone_config(self):
            return config

    Suite().test_overfits_one_pair()


@pytest.mark.parametrize(("backbone", "mixes"), [(Gru(), "row"), (Alone(), "nothing")])
def test_the_masked_generator_refuses_what_has_no_attention(backbone, mixes):
    with pytest.raises(PluginError) as error:
        compose(backbone, {"caption": Words()}, Masked(), texts=TEXTS)
    assert str(error.value) == (
        f"the generator 'masked' needs a backbone that mixes \"visible\", but '{backbone.type}' mixes \"{mixes}\"; "
        "choose another generator or backbone"
    )


def test_check_names_the_line_of_a_generator_that_does_not_fit(site, tmp_path):
    site("mmgen-gru", "mmgen_gru", "from packages.recurrent import Gru, Alone, register_backbones\n")
    (tmp_path / "toy.toml").write_text(recipe(backbone={"type": "gru"}).replace("num_", "# num_", 2))
    done = mmgen_here(tmp_path, "check", "toy.toml")
    assert "toy.toml:10: generator.type: the generator 'masked' needs a backbone that mixes" in done.stderr, done.stderr


def test_a_backbone_that_says_nothing_and_mixes_is_caught():
    class Wrong(Gru):
        """A liar."""

        mixes = "nothing"

    suite = type("Suite", (BackboneSuite,), {"config": lambda self: Wrong()})
    with pytest.raises(AssertionError, match="a slot changes the states of other slots, though the config says mixes"):
        suite().test_slots_do_not_mix()
