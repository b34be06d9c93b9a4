"""The texts that a toy model writes, and a model that has memory to write about few examples only."""

import pytest
import torch

from kit import toys
from mmgen.decoding import Decoding
from mmgen.evaluation.generate import generate_split
from mmgen.recipe.tables import Step, Training
from mmgen.storage import generations


def short():
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def cramp(model, most):
    """The model has memory to write about so many examples at a time; -> how many it was asked for."""
    whole, tried = model.generator.generate, []

    def cramped(model, batch, options):
        tried.append(len(batch.ids))
        found = whole(model, batch, options)  # half-way through, so that there is something to throw away
        if len(batch.ids) > most:
            raise short()
        return found

    model.generator.generate = cramped
    return tried


def written(folder, model, decoding=None, told=None, accelerator=None):
    folder.mkdir(exist_ok=True)
    step = Step(inputs=("caption",), train=("backbone",), training=Training(precision="fp32"))
    context = toys.context(folder, step, told, accelerator)
    generate_split(model, context, toys.examples(13), decoding or Decoding(), batch_size=8)
    return generations.read(folder) if context.accelerator.is_main_process else []


def alike(ours, theirs):
    """The same texts; scores but for rounding, which depends on what is computed together."""
    assert [[(text.id, text.text, text.tokens) for text in texts] for texts in ours] == [
        [(text.id, text.text, text.tokens) for text in texts] for texts in theirs
    ]
    assert [text.score for texts in ours for text in texts] == pytest.approx(
        [text.score for texts in theirs for text in texts], abs=1e-4
    )
