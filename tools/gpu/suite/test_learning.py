"""Training on the GPU: bf16 within tolerance, the same bits when repeated or resumed, and picture inputs."""

import json
import random

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from kit import toys
from mmgen_encoders import Bert
from mmgen_grid import TimmGrid
from mmgen_masked import Masked
from mmgen_pictures import Pictures
from mmgen_regions import Regions, Roi
from mmgen_text import Text
from PIL import Image

from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.data.sources import Source
from mmgen.evaluation.generate import generate
from mmgen.model import compose
from mmgen.parts import Picture, Record
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.tensors import Example
from mmgen.training.train import train


def flat(model, examples, device, half):
    """(loss, all gradients concatenated) of a batch on the device."""
    model.zero_grad()
    batch = Collator(model, ["caption"])([resolve(example) for example in examples]).to(device)
    with torch.autocast(device.type, torch.bfloat16, enabled=half):
        loss = model(batch)
    loss.sums["generator.loss"].backward()
    return loss.mean.item(), torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def test_bf16_trains_nearly_the_same(device):
    model, examples = toys.model(Bert, hidden_size=64).to(device), toys.examples(12)
    half, full = flat(model, examples, device, True), flat(model, examples, device, False)
    assert half[0] == pytest.approx(full[0], rel=0.02)
    assert torch.nn.functional.cosine_similarity(half[1], full[1], dim=0) > 0.99
    assert half[1].dtype == torch.float32 and half[1].isfinite().all()


@torch.inference_mode()
def test_bf16_writes_with_nearly_the_same_probabilities(device):
    model, examples = toys.model(Bert, hidden_size=64).to(device), toys.examples(8)
    full = generate(model, examples)
    with torch.autocast(device.type, torch.bfloat16):
        half = generate(model, examples)
    same = [ours[0].tokens == theirs[0].tokens for ours, theirs in zip(half, full, strict=True)]
    assert sum(same) >= len(same) / 2
    for ours, theirs, equal in zip(half, full, same, strict=True):
        assert not equal or ours[0].score == pytest.approx(theirs[0].score, abs=0.05)


def pictured(device, dropout=0.1):
    """A model of regions and captions, and examples."""
    torch.manual_seed(0)
    draw, words = np.random.default_rng(0), random.Random(0)
    regions = Regions(fields=("image",), width=16, fingerprint={"made": "up"}, max_regions=5)
    model = compose(
        Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=dropout),
        {"image": regions, "caption": Text(fields=("caption",))},
        Masked(max_tokens=9),
        texts=[" ".join(toys.WORDS)] * 3,
    )
    examples = []
    for number in range(24):
        count = 1 + number % 5
        boxes = np.sort(draw.random((count, 2, 2), np.float32), 1).reshape(-1, 4)
        image = Record(str(number), draw.standard_normal((count, 16), np.float32), boxes)
        text = [" ".join(words.choices(toys.WORDS, k=words.randint(1, 7))) for _ in range(3)]
        examples.append(Example(str(number), {"image": image, "caption": text[0]}, tuple(text[1:])))
    return model.to(device), examples


def accelerator(device):
    """A fixture that resets accelerate, which otherwise keeps one device for the whole process."""
    AcceleratorState._reset_state(reset_partial_state=True)
    return Accelerator(cpu=device.type == "cpu")


def learn(folder, device, precision, stop_at=None, **more):
    """Weights and log of a small step. `stop_at`: the update after which training is interrupted."""
    model, examples = pictured(device, **more)
    training = Training(
        batch_size=12, micro_batch_size=6, epochs=3, learning_rate=1e-3, precision=precision, checkpoint_every=1
    )
    step = Step(inputs=("image", "caption"), train=("image", "backbone"), training=training)
    folder.mkdir(exist_ok=True)
    forward, calls = model.forward, []

    def stopping(batch):
        calls.append(1)
        if stop_at is not None and len(calls) > 2 * stop_at:
            raise KeyError("as good as a kill")
        return forward(batch)

    model.forward = stopping
    train(model, toys.context(folder, step, accelerator=accelerator(device)), [Source(examples[:18], examples[18:])])
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {name: tensor.cpu().clone() for name, tensor in state(model).items()}, log


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_same_bits_twice_and_after_a_stop(tmp_path, device, precision):
    once, log = learn(tmp_path / "once", device, precision)
    again, log_again = learn(tmp_path / "again", device, precision)
    with pytest.raises(KeyError, match="as good as a kill"):
        learn(tmp_path / "stopped", device, precision, stop_at=4)
    resumed, log_resumed = learn(tmp_path / "stopped", device, precision)
    for run, run_log in ((again, log_again), (resumed, log_resumed)):
        assert [name for name in once if not once[name].equal(run[name])] == [] and run_log == log


def test_training_on_the_gpu_equals_training_on_the_cpu(tmp_path, device):
    """Without dropout, whose random numbers differ between devices."""
    ours, log = learn(tmp_path / "ours", device, "fp32", dropout=0.0)
    theirs, expected = learn(tmp_path / "theirs", torch.device("cpu"), "fp32", dropout=0.0)
    for name in ("loss", "grad_norm"):
        assert [record[name] for record in log] == pytest.approx([record[name] for record in expected], rel=1e-3)
    assert max((ours[name] - theirs[name]).abs().max() for name in ours if not name.endswith("key.bias")) < 1e-3


def test_pictures_have_the_same_features_but_for_half_precision(device):
    draw = np.random.default_rng(0)
    images = [Image.fromarray(draw.integers(0, 255, (48, 40, 3), np.uint8)) for _ in range(3)]
    extractor = TimmGrid(model="resnet18", weights="random", grid=2, image_size=64, batch_size=2).build()
    assert extractor.network.device.type == device.type
    pictures = [Picture(str(number), lambda image=image: image) for number, image in enumerate(images)]
    records = list(extractor.records(pictures))
    extractor.network.module.cpu()
    extractor.network.device = torch.device("cpu")
    extractor.network.mean, extractor.network.deviation = (
        extractor.network.mean.cpu(),
        extractor.network.deviation.cpu(),
    )
    for ours, theirs in zip(records, extractor.records(pictures), strict=True):
        expected = np.asarray(theirs.features, np.float32)
        assert np.abs(np.asarray(ours.features, np.float32) - expected).max() < 0.02 * np.abs(expected).max()


def test_a_network_that_trains_along_has_the_same_gradients(device):
    draw = np.random.default_rng(0)
    images = [Image.fromarray(draw.integers(0, 255, (48, 40, 3), np.uint8)) for _ in range(4)]
    boxes = [(0.0, 0.0, 0.5, 0.75), (0.25, 0.25, 1.0, 1.0)]
    pictures = {
        str(number): Picture(str(number), lambda image=image: image, boxes) for number, image in enumerate(images)
    }
    extractor = Roi(model="resnet18", weights="random", level=2, pool=1, image_size=64)
    image = Pictures(embedder=Regions(normalize="standard"), extractor=extractor, frozen_level=0)
    torch.manual_seed(0)
    encoder = Bert(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.0)
    model = compose(encoder, {"image": image}, Masked(max_tokens=9), texts=[" ".join(toys.WORDS)] * 3)
    model.embedders["image"].prepare(pictures)
    examples = [Example(key, {"image": key}, (" ".join(toys.WORDS[:4]),)) for key in pictures]
    batch = Collator(model, ["image"])([resolve(example) for example in examples])
    results = []
    for place, half in ((torch.device("cpu"), False), (device, False), (device, True)):
        model.to(place).zero_grad()
        with torch.autocast(place.type, torch.bfloat16, enabled=half):
            loss = model(batch.to(place))
        loss.sums["generator.loss"].backward()
        network = model.embedders["image"].network
        gradients = torch.cat([p.grad.flatten().cpu() for p in network.parameters() if p.grad is not None])
        results.append((loss.mean.item(), gradients))
    expected = results[0]
    assert expected[1].abs().max() > 0 and network.conv1.weight.grad is None
    for (loss_value, gradient), tolerance, alike in zip(results[1:], (1e-4, 0.03), (0.9999, 0.98), strict=True):
        assert loss_value == pytest.approx(expected[0], rel=tolerance)
        assert torch.nn.functional.cosine_similarity(gradient, expected[1], dim=0) > alike
