"""Training, generation and probing on a fake GPU: nothing stays on the CPU, and few operations wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from kit import toys
from kit.training import micro_batches, validation_of
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from mmgen import Decoding
from mmgen.data.collate import Collator, Source
from mmgen.data.seeds import resolve
from mmgen.evaluation.answers import generate
from mmgen.recipe.tables import Step, Training
from mmgen.training.train import Trainer, make_material

pytestmark = pytest.mark.slow

# --- the fake GPU -----------------------------------------------------------------------------------------------------


CUDA, CPU = torch.device("cuda", 0), torch.device("cpu")
MARK = "_on_fake_gpu"
# what needs numbers, and so waits for the device; an index of booleans does too
READS_NUMBERS = {
    getattr(Tensor, name)
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "nonzero", "cpu", "masked_select")
} | {torch.nonzero, torch.masked_select}
MAY_MIX = {
    torch._has_compatible_shallow_copy_type,
    Tensor.copy_,
    Tensor.__getitem__,
    Tensor.__setitem__,
    Tensor.to,
    Tensor.cpu,
    Tensor.data.__set__,
}


def lies_on_gpu(tensor: Tensor) -> bool:
    return getattr(tensor, MARK, False)


class MixedDevices(RuntimeError):
    """The error of torch for tensors on two devices."""


class FakeGpu(TorchFunctionMode):
    """A context in which `cuda` is a device: tensors stay on the CPU, but report it, and cannot be mixed with others.

        with FakeGpu() as gpu:
            model.to("cuda")
            model(batch.to("cuda"))
        gpu.waits  # how often the CPU would have waited for the device: function -> number

    It finds mistakes that only a GPU shows otherwise: tensors left on the CPU, and waits in a hot loop. What libraries
    do below torch's own functions is not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = dict(kwargs or {})
        if func == Tensor.device.__get__:
            return CUDA if lies_on_gpu(args[0]) else func(*args)
        if func == Tensor.is_cuda.__get__:
            return lies_on_gpu(args[0])
        if func is Tensor.numpy and lies_on_gpu(args[0]):
            raise MixedDevices("can't convert cuda:0 device type tensor to numpy")
        target, args, kwargs = self._target(func, args, kwargs)
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        if func not in MAY_MIX:
            self._together(func, tensors)
        self._note(func, args)
        if func is torch.tensor and target is not None and torch.device(target).type == "cuda":
            self.waits["copy of numbers"] += 1
        result = func(*args, **kwargs)
        if target is None:
            on_gpu = any(map(lies_on_gpu, tensors[:1] if func in MAY_MIX else tensors))
        else:
            on_gpu = target.type == "cuda"
        if func == Tensor.data.__set__:
            setattr(args[0], MARK, lies_on_gpu(args[1]))
        return self._marked(result, on_gpu, tensors)

    def _target(self, func: Any, args: tuple, kwargs: dict) -> tuple[torch.device | None, tuple, dict]:
        """The device argument of a call, and the call without it."""
        target = kwargs.pop("device", None)
        if func in (Tensor.cuda, Tensor.cpu):
            return (CUDA if func is Tensor.cuda else CPU), args[:1], {}
        if func is Tensor.to and len(args) > 1:
            requested, rest = args[1], args[2:]
            if isinstance(requested, Tensor):
                target, args = requested.device, (args[0], requested.dtype, *rest)
            elif isinstance(requested, torch.device | str | int):
                dtype = (rest[0] if rest else None) or kwargs.pop("dtype", None) or args[0].dtype
                target, args = requested, (args[0], dtype, *rest[1:])
        elif func is Tensor.to and target is not None and not kwargs.get("dtype"):
            kwargs["dtype"] = args[0].dtype
        return (None if target is None else torch.device(target)), args, kwargs

    def _together(self, func: Any, tensors: list[Tensor]) -> None:
        """Raises MixedDevices for tensors on two devices. CPU tensors with a single number may be mixed with all."""
        counted = {lies_on_gpu(tensor) for tensor in tensors if tensor.dim() or lies_on_gpu(tensor)}
        if len(counted) > 1:
            raise MixedDevices(f"{getattr(func, '__name__', func)}: expected all tensors to be on the same device")

    def _note(self, func: Any, args: tuple) -> None:
        masked = func in (Tensor.__getitem__, Tensor.__setitem__) and any(
            isinstance(leaf, Tensor) and leaf.dtype == torch.bool and lies_on_gpu(leaf) for leaf in tree_leaves(args[1])
        )
        if masked or (func in READS_NUMBERS and args and isinstance(args[0], Tensor) and lies_on_gpu(args[0])):
            self.waits["index of booleans" if masked else func.__name__] += 1

    def _marked(self, result: Any, on_gpu: bool, tensors: list[Tensor]) -> Any:
        """Mark every tensor of a result with its device. A moved argument becomes a new tensor."""
        if isinstance(result, Tensor):
            if any(result is tensor for tensor in tensors):
                if lies_on_gpu(result) == on_gpu:
                    return result
                result = result.clone()
            setattr(result, MARK, on_gpu)
            return result
        if isinstance(result, tuple | list):
            for item in result:
                self._marked(item, on_gpu, tensors)
        return result


# --- tests ------------------------------------------------------------------------------------------------------------


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
