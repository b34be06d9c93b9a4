"""Training on a GPU: the same as on the processor, after a stop, with too little memory, and through a network."""

import gc
import json
import random

import numpy as np
import pytest
import torch
from accelerate.state import PartialState
from click.testing import CliRunner
from kit import toys
from mmgen_encoders import Bert
from mmgen_extractors import Roi, TimmGrid
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from mmgen_inputs.pictures import Pictures
from PIL import Image

import mmgen
from mmgen.cli import main
from mmgen.data.collate import Collator, Source
from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.parts import Picture, Record
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.training.distributed import Processes
from mmgen.training.train import train

pytestmark = pytest.mark.gpu


def pictured(device, count=24, **sizes):
    """A model of regions and captions, and examples with two questions each."""
    torch.manual_seed(0)
    draw, words = np.random.default_rng(0), random.Random(0)
    encoder = Bert(**{"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 90, **sizes})
    inputs = {
        "image": Regions(fields=("image",), width=16, fingerprint={"made": "up"}, max_regions=5),
        "caption": Text(fields=("caption",)),
    }
    model = compose(encoder, inputs, Masked(max_tokens=9), texts=[" ".join(toys.WORDS)] * 3)
    examples = []
    for number in range(count):
        boxes = np.sort(draw.random((1 + number % 5, 2, 2), np.float32), 1).reshape(-1, 4)
        image = Record(str(number), draw.standard_normal((len(boxes), 16), np.float32), boxes)
        text = [" ".join(words.choices(toys.WORDS, k=words.randint(1, 7))) for _ in range(3)]
        examples.append(Example(str(number), {"image": image, "caption": text[0]}, tuple(text[1:])))
    return model.to(device), examples


def learn(folder, device, stop_at=None, precision="fp32", material=None, **training):
    """Weights and log of a small step. `stop_at`: the update after which training is interrupted."""
    model, examples = material or pictured(device)
    settings = {"batch_size": 12, "micro_batch_size": 6, "epochs": 3, "learning_rate": 1e-3, **training}
    training = Training(precision=precision, checkpoint_every=1, **settings)
    step = Step(inputs=("image", "caption"), train=("image", "backbone"), training=training)
    folder.mkdir(exist_ok=True)
    forward, calls = model.forward, []

    def stopping(batch):
        calls.append(1)
        if stop_at is not None and len(calls) > 2 * stop_at:
            raise KeyError("as good as a kill")
        return forward(batch)

    model.forward = stopping
    PartialState._reset_state()  # accelerate keeps one device for a process
    context = toys.context(folder, step, accelerator=Processes(cpu=device.type == "cpu"))
    train(model, context, [Source(examples[6:], examples[:6])])
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {name: tensor.cpu().clone() for name, tensor in state(model).items()}, log


def farthest(weights, expected):
    """The largest difference; biases of keys have no gradient but rounding."""
    return max((weights[name] - expected[name]).abs().max() for name in weights if not name.endswith("key.bias"))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_stopped_training_ends_as_one_that_was_not(tmp_path, device, precision):
    """A GPU may add in another order in another run, so equal means to rounding."""
    once, log = learn(tmp_path / "once", device, precision=precision)
    with pytest.raises(KeyError, match="as good as a kill"):
        learn(tmp_path / "stopped", device, 4, precision)
    resumed, resumed_log = learn(tmp_path / "stopped", device, precision=precision)
    assert len(resumed_log) == len(log)
    if device.type == "cpu":
        assert resumed_log == log and all(once[name].equal(resumed[name]) for name in once)
    assert farthest(resumed, once) <= (1e-4 if precision == "fp32" else 1e-3)


def test_training_equals_training_on_the_processor(tmp_path, device):
    """Without dropout, whose random numbers differ between devices."""
    weights, log = learn(tmp_path / "here", device, material=pictured(device, dropout=0.0))
    cpu = torch.device("cpu")
    expected, expected_log = learn(tmp_path / "there", cpu, material=pictured(cpu, dropout=0.0))
    for name in ("loss", "grad_norm"):
        assert [record[name] for record in log] == pytest.approx([record[name] for record in expected_log], rel=1e-3)
    assert farthest(weights, expected) < 1e-3


def test_with_too_little_memory_the_same_is_learnt_in_smaller_batches(tmp_path, device):
    if device.type == "cpu":
        pytest.skip("a processor's memory cannot be limited")

    def learn_with(memory, name):
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.set_per_process_memory_fraction(memory / torch.cuda.get_device_properties(0).total_memory)
        material = pictured(device, 518, dropout=0.0, hidden_size=512)
        sizes = {"batch_size": 1024, "micro_batch_size": 1024, "epochs": 6}
        return learn(tmp_path / name, device, material=material, learning_rate=2e-5, **sizes)

    total = torch.cuda.get_device_properties(0).total_memory
    expected, _ = learn_with(total, "enough")
    stays = 16 * sum(weights.numel() for weights in expected.values())  # weights, gradients and two moments
    limit = stays + 0.4 * (torch.cuda.max_memory_allocated() - stays)
    failures = torch.cuda.memory_stats()["num_ooms"]
    try:
        weights, _ = learn_with(limit, "little")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert torch.cuda.memory_stats()["num_ooms"] > failures and farthest(weights, expected) < 1e-5


def test_a_run_is_made_and_asked_on_the_device(tmp_path, monkeypatch, device):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    monkeypatch.chdir(tmp_path)
    PartialState._reset_state()
    sets = ("data.train_size=8", "steps.first.evaluate=false")
    command = ["run", "toy.toml", "--step", "first", *(word for setting in sets for word in ("--set", setting))]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    environment = json.loads((tmp_path / toys.PLACE / "environment.json").read_text())
    assert (environment["device"] == "cpu") == (device.type == "cpu")
    assert mmgen.load(toys.PLACE, "first").model.device.type == device.type


def random_images(count):
    draw = np.random.default_rng(0)
    return [Image.fromarray(draw.integers(0, 255, (48, 40, 3), np.uint8)) for _ in range(count)]


def test_pictures_have_the_same_features_but_for_half_precision(device):
    pictures = [Picture(str(number), lambda image=image: image) for number, image in enumerate(random_images(3))]
    extractor = TimmGrid(model="resnet18", weights="random", grid=2, image_size=64, batch_size=2).build()
    network = extractor.network
    assert network.mean.device.type == device.type
    records = list(extractor.records(pictures))
    network.cpu()
    extractor.device = torch.device("cpu")
    for record, on_cpu in zip(records, extractor.records(pictures), strict=True):
        expected = np.asarray(on_cpu.features, np.float32)
        assert np.abs(np.asarray(record.features, np.float32) - expected).max() < 0.02 * np.abs(expected).max()


def test_a_network_that_trains_along_has_the_same_gradients(device):
    boxes = [(0.0, 0.0, 0.5, 0.75), (0.25, 0.25, 1.0, 1.0)]
    images = {str(number): image for number, image in enumerate(random_images(4))}
    extractor = Roi(model="resnet18", weights="random", level=2, pool=1, image_size=64)
    image = Pictures(embedder=Regions(normalize="standard"), extractor=extractor)
    torch.manual_seed(0)
    encoder = Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.0)
    model = compose(encoder, {"image": image}, Masked(max_tokens=9), texts=[" ".join(toys.WORDS)] * 3)
    model.embedders["image"].prepare({key: Picture(key, lambda key=key: images[key], boxes) for key in images})
    examples = [Example(key, {"image": key}, (" ".join(toys.WORDS[:4]),)) for key in images]
    batch = Collator(model, ["image"])([resolve(example) for example in examples])
    results = []
    for place, half in ((torch.device("cpu"), False), (device, False), (device, True)):
        model.to(place).zero_grad()
        with torch.autocast(place.type, torch.bfloat16, enabled=half):
            loss = model(batch.to(place)).mean
        loss.backward()
        network = model.embedders["image"].network
        gradients = torch.cat([p.grad.flatten().cpu() for p in network.parameters() if p.grad is not None])
        results.append((loss.item(), gradients))
    (expected_loss, expected), *results = results
    assert expected.abs().max() > 0 and network.conv1.weight.grad is None
    for (loss, gradients), tolerance, alike in zip(results, (1e-4, 0.03), (0.9999, 0.98), strict=True):
        assert loss == pytest.approx(expected_loss, rel=tolerance)
        assert torch.nn.functional.cosine_similarity(gradients, expected, dim=0) > alike
