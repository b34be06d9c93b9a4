"""Training, generation and probing on a fake GPU: nothing stays on the CPU, and few operations wait."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from kit import toys
from kit.fake_gpu import CUDA, FakeGpu, MixedDevices
from kit.training import micro_batches, validation_of

from mmgen import Decoding
from mmgen.data.collate import Collator, Source
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.recipe.tables import Step, Training
from mmgen.training.train import Trainer, make_material

pytestmark = pytest.mark.slow

SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "samples": Decoding(do_sample=True, num_return_sequences=3),
}


@pytest.mark.parametrize("family", toys.families())
def test_every_encoder_trains_and_writes_there(family):
    model, examples = toys.model(family), [resolve(example) for example in toys.examples(4)]
    with FakeGpu():
        model.to("cuda")
        assert {parameter.device.type for parameter in model.parameters()} == {"cuda"}
        loss = model(Collator(model, ["caption"])(examples).to("cuda"))
        assert all(total.is_cuda for total in loss.sums.values())
        loss.mean.backward()
        assert len(generate(model, examples)) == 4


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_writes_there(search):
    model, examples = toys.pictured()
    with FakeGpu():
        model.to("cuda")
        assert len(generate(model, examples, SEARCHES[search], batch_size=4)) == 6


def test_a_pass_waits_for_the_device_a_few_times_only():
    """The device is idle during each wait: a pass has these waits, and no encoder layer adds any."""
    model, examples = toys.pictured()
    with FakeGpu() as gpu:
        model.to("cuda").train()
        batch = Collator(model, model.inputs)(examples).to("cuda")
        gpu.waits.clear()
        model(batch).mean.backward()
    assert 0 < sum(gpu.waits.values()) <= 6, gpu.waits


def test_a_part_that_was_left_behind_is_found():
    model, examples = toys.pictured()
    with FakeGpu():
        model.to("cuda").embedders.cpu()
        with pytest.raises(MixedDevices, match="expected all tensors to be on the same device"):
            model(Collator(model, model.inputs)(examples).to("cuda"))


def learner(model, examples, folder):
    """The learner of `mmgen run`, on the fake device."""
    attributes = {"num_processes": 1, "process_index": 0, "is_main_process": True}
    accelerator = SimpleNamespace(device=CUDA, backward=lambda loss: loss.backward(), **attributes)
    training = Training(batch_size=4, micro_batch_size=2, epochs=2, precision="fp32")
    step = Step(inputs=("image", "caption"), train=("image", "backbone"), training=training)
    context = toys.context(folder, step, accelerator=accelerator)
    texts = [replace(example, id=f"{example.id} alone") for example in examples]
    sources = [Source(examples, examples, name="both"), Source(texts, texts, 0.5, ("caption",), name="texts")]
    return Trainer(model, context, make_material(model, context, sources))


def update(trained):
    """The learner's next update; returns its log record."""
    cursor, material = trained.cursor, trained.material
    micros = micro_batches(material, cursor.done)
    cursor.records.append(trained.update(cursor.done, micros))
    return cursor.records[-1], len(micros)


def test_updates_validation_and_a_resume_work_there(tmp_path):
    (model, examples), (again, _) = (toys.pictured(dropout=0.0) for _ in range(2))
    with FakeGpu() as gpu:
        model.to("cuda")
        first = learner(model, examples, tmp_path)
        update(first)
        gpu.waits.clear()
        _, micros = update(first)
        assert sum(gpu.waits.values()) <= 4 + 4 * micros, gpu.waits
        assert validation_of(first)["validation_loss"] > 0
        first.save()
        two = learner(again.to("cuda"), examples, tmp_path)
        devices = {value.device.type for p in two.trained.values() for value in two.optimizer.state[p].values()}
        assert two.cursor.done == 2 and devices == {"cuda"} and update(first) == update(two)
