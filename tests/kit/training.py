"""One step of a toy model: its settings, its learner, its log, its stop in the middle; and a model with memory for few
pairs only."""

import contextlib
import json
import os
import signal

import pytest
import torch

from kit import toys
from mmgen.data.collate import Source
from mmgen.data.loader import updates
from mmgen.progress import Progress
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.training.accumulate import validate
from mmgen.training.optimizer import set_learning
from mmgen.training.train import Trainer, make_material, train


class RecordedProgress(Progress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)


class LimitedMemory:
    """Replaces a model's `forward`; has memory for `pairs` pairs at a time, and for `later` pairs after `after`
    batches."""

    def __init__(self, model, pairs, later=None, after=0):
        self.model, self.pairs, self.later, self.after, self.seen, self.tried = model, pairs, later, after, [], []
        self.forward = model.forward
        model.forward = self

    def __call__(self, batch, *through):
        pairs = int((batch.tail.layout.group.amax(1)).sum())
        self.tried.append(pairs)
        if pairs > (self.later if self.later and len(self.seen) >= self.after else self.pairs):
            self.forward(batch, *through)  # half-way through, so that there is something to throw away
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        self.seen.append(pairs)
        return self.forward(batch, *through)


@contextlib.contextmanager
def sigterm_before(number):
    """SIGTERM just before this update, within the block."""
    update = Trainer.update

    def interrupted(learner, at, *arguments, **more):
        if at == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return update(learner, at, *arguments, **more)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trainer, "update", interrupted)
        yield


def step(**training):
    step_config = {
        "batch_size": 12,
        "micro_batch_size": 6,
        "epochs": 2,
        "learning_rate": 1e-3,
        "precision": "fp32",
        **training,
    }
    return Step(inputs=("caption",), train=("backbone",), training=Training(**step_config))


def train_step(folder, model, step_config=None, examples=None, progress=None, validation=()):
    folder.mkdir(exist_ok=True)
    train(
        model,
        toys.context(folder, step_config or step(), progress),
        [Source(examples or toys.examples(20), validation)],
    )
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def build_trainer(model, folder, examples=None, step_config=None, validation=()):
    """The learner of `step()`, as far as its checkpoint in the folder is."""
    context = toys.context(folder, step_config or step())
    return Trainer(model, context, make_material(model, context, [Source(examples or toys.examples(20), validation)]))


def validation_of(trainer):
    """The validation losses of the present weights."""
    trainer.model.eval()
    with torch.no_grad():
        losses = validate(trainer.context, trainer.material, trainer.loss)
    set_learning(trainer.model, trainer.context.step)
    return losses


def largest_difference(first, second):
    """The largest difference of two models, without keys' biases: their gradient is only rounding, which Adam
    amplifies."""
    ours, theirs = state(first), state(second)
    return max((ours[name] - theirs[name]).abs().max().item() for name in ours if not name.endswith("key.bias"))


def micro_batches(material, number=0):
    """The micro-batches of an update, as the loader gives them to one process."""
    return next(updates(material.streams, material.plan, material.micro_batch_size, start=number))[1]


def single_pairs(material, number=0):
    """Every visit of an update as a batch of one example, after its source."""
    for micro in material.plan.update(number, material.micro_batch_size):
        stream = material.streams[micro.source]
        for index, epoch in zip(micro.indices.tolist(), micro.passes.tolist(), strict=True):
            yield stream.source, stream.collate([stream.source.examples[index]], [epoch])
