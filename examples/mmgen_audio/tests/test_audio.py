"""The embedder passes mmgen's conformance suite; spectra are right; files that cannot be read are refused in words."""

import wave

import numpy as np
import pytest
import torch
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.model import compose
from mmgen.parts import File, Record
from mmgen.recipe.tables import Recipe, Step
from mmgen.testing import EmbedderSuite, Tiny
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from mmgen_scenes import Scenes
from transformers.audio_utils import mel_filter_bank, spectrogram

from mmgen_audio import Audio
from mmgen_audio.embedder import AudioReader, LogMel
from mmgen_audio.waves import numbers, read, write


@pytest.fixture(scope="session", autouse=True)
def sounds(tmp_path_factory):
    """Two files of noise, where the suite looks for them."""
    folder = tmp_path_factory.mktemp("sounds")
    draw = np.random.default_rng(0)
    for name, length in (("short", 1600), ("long", 5000)):
        write(folder / f"{name}.wav", draw.uniform(-0.5, 0.5, length), 8000)
    TestAudio.folder = folder
    return folder


class TestAudio(EmbedderSuite):
    folder = None

    def config(self):
        return Audio(folder=self.folder, sample_rate=8000, mels=16, frames=4)

    def examples(self):
        return [Example("short", {"sound": "short"}), Example("long", {"sound": "long"})]


def test_it_is_what_transformers_computes():
    """Another implementation of the same definition."""
    samples = torch.from_numpy(np.random.default_rng(1).normal(0, 0.1, 4000)).float()
    bands = mel_filter_bank(257, 64, 0.0, 8000.0, 16000)
    window = np.zeros(512)
    window[56:456] = np.hanning(401)[:-1]  # centred in the transform, as torch.stft has it
    expected = spectrogram(
        samples.numpy(), window, 512, 160, 512, power=2.0, pad_mode="constant", mel_filters=bands, log_mel="log10"
    ).T
    np.testing.assert_allclose(LogMel(Audio())(samples).numpy(), expected, atol=1e-4)


def test_slots_and_their_times(sounds):
    config = Audio(folder=sounds, sample_rate=8000, frames=10, fields=("sound",))
    example = Example("e", {"sound": "long"})
    assert AudioReader(config).read(example).shape == (7, 640)  # 5000 / 80 + 1 = 63 frames
    names = config.build(Tiny().build()).describe(example)["names"]
    assert names[0] == "0.0-0.1 s" and names[-1] == "0.6-0.7 s"
    short = config.model_copy(update={"max_seconds": 0.2})
    assert AudioReader(short).read(example).shape == (3, 640)


@pytest.mark.parametrize(
    "width, data, value",
    [
        (1, b"\x00\x80\xc0", [-1, 0, 0.5]),
        (2, b"\x00\x80\x00\x40", [-1, 0.5]),
        (3, b"\x00\x00\x80\x00\x00\x40", [-1, 0.5]),
        (4, b"\x00\x00\x00\x80\x00\x00\x00\x40", [-1, 0.5]),
    ],
)
def test_samples_of_every_width(width, data, value):
    assert numbers(data, width).tolist() == value


def test_it_does_not_matter_how_loud_a_file_is(tmp_path):
    noise = np.random.default_rng(2).uniform(-1, 1, 4000)
    for name, loud in (("quiet", 0.05), ("loud", 0.9)):
        write(tmp_path / f"{name}.wav", loud * noise, 16000)
    reader = AudioReader(Audio(folder=tmp_path, fields=("sound",)))
    quiet, loud = (reader.read(Example(name, {"sound": name})) for name in ("quiet", "loud"))
    assert (quiet - loud).abs().max() < 0.05
    write(tmp_path / "silent.wav", np.zeros(4000), 16000)
    assert not reader.read(Example("silent", {"sound": "silent"})).any()


def test_channels_are_averaged(tmp_path):
    with wave.open(str(tmp_path / "two.wav"), "wb") as file:
        file.setparams((2, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.array([[16384, 0], [0, -16384]], "<i2").tobytes())
    path = tmp_path / "two.wav"
    assert read(File("two", path), 16000, 1).tolist() == [0.25, -0.25]


def test_what_cannot_be_read_is_refused_in_words(tmp_path, sounds):
    def refused(path, rate=16000):
        with pytest.raises(DataError) as caught:
            read(File(str(path), path), rate, 1)
        return str(caught.value).removeprefix(f"{path}: ")

    assert refused(tmp_path / "none.wav") == "no such file"
    assert (
        refused(sounds / "long.wav")
        == "has 8000 samples a second, and sample_rate is 16000; convert it (ffmpeg -i IN -ar 16000 OUT.wav)"
    )
    (tmp_path / "text.wav").write_text("not a sound at all")
    assert refused(tmp_path / "text.wav").startswith("not a PCM WAV file: file does not start with RIFF id; convert it")
    (tmp_path / "nothing.wav").write_bytes(b"")
    assert refused(tmp_path / "nothing.wav").startswith("not a PCM WAV file: it ends too early; convert it")
    write(tmp_path / "silent.wav", np.zeros(0), 16000)
    assert refused(tmp_path / "silent.wav") == "holds no sound"


def test_a_picture_its_sound_and_a_caption_are_asked_about_together(tmp_path, sounds):
    """Three modalities in one query: the sound has an effect, and an unknown sound is reported."""
    inputs = {
        "image": Regions(width=3, fingerprint={}, fields=("image",)),
        "sound": Audio(folder=sounds, sample_rate=8000, mels=16, frames=4, fields=("sound",)),
        "caption": Text(fields=("caption",)),
    }
    step = Step(inputs=tuple(inputs), train=("sound",))
    backbone = Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2)
    recipe = Recipe(
        name="three", backbone=backbone, inputs=inputs, generator=Masked(), steps={"all": step}, data=Scenes()
    )
    torch.manual_seed(0)
    model = compose(backbone, inputs, recipe.generator, texts=["what barks at the dog"] * 3).eval()
    predictor = Predictor(model, recipe, "all")
    seen = Record("seen", np.ones((2, 3), np.float32), np.array([[0, 0, 1, 1], [0, 0, 0.5, 1]], np.float32))
    heard = ("short", "long", "nowhere")
    queries = [Query(name, {"image": seen, "sound": name, "caption": "a dog"}) for name in heard]
    short, long, lost = predictor.answers(queries)
    assert short.score != long.score
    assert lost.error == f"{sounds}/nowhere.wav: no such file"
    path, content = sounds / "long.wav", (sounds / "long.wav").read_bytes()
    for own in (path, str(path), content, File("upload", content)):
        assert predictor.ask({"image": seen, "sound": own, "caption": "a dog"}).texts[0].score == pytest.approx(
            long.score, abs=1e-6
        )
