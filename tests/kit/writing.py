"""The texts of a toy model, and a model with memory to write for few examples only."""

import pytest
import torch

from kit import toys
from mmgen.decoding import Decoding
from mmgen.evaluation import answers
from mmgen.recipe.tables import Step, Training
from mmgen.storage import generations


def out_of_memory_error():
    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")


def limit_memory(model, most):
    """Limits the model's memory to `most` examples at a time; returns the list of batch sizes tried."""
    generate_all, tried = model.generator.generate, []

    def limited_generate(model, batch, options):
        tried.append(len(batch.ids))
        texts = generate_all(model, batch, options)  # half-way through, so that there is something to throw away
        if len(batch.ids) > most:
            raise out_of_memory_error()
        return texts

    model.generator.generate = limited_generate
    return tried


def write_texts(folder, model, decoding=None, progress=None, accelerator=None):
    folder.mkdir(exist_ok=True)
    step = Step(inputs=("caption",), train=("backbone",), training=Training(precision="fp32"))
    context = toys.context(folder, step, progress, accelerator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(answers, "BATCH_SIZE", 8)
        answers.write_answers(model, context, toys.examples(13), {generations.GENERATIONS: decoding or Decoding()})
    return generations.read(folder) if context.accelerator.is_main_process else []


def assert_same_texts(ours, theirs):
    """Equal texts; equal scores up to rounding, which depends on the batch."""
    assert [len(texts) for texts in ours] == [len(texts) for texts in theirs]
    for text, their in zip(sum(ours, []), sum(theirs, []), strict=True):
        assert (text.id, text.text, text.tokens) == (their.id, their.text, their.tokens)
        assert text.score == pytest.approx(their.score, abs=1e-4)
