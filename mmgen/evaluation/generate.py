"""Generate: texts for examples; and for every example of a split, shared out over processes, in the split's order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial

import torch

from ..data.checked import check_texts
from ..data.collate import Collator, by_length
from ..data.seeds import seed_from
from ..decoding import Decoding
from ..errors import DataError
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, OomRetry
from ..tensors import Example, Generation
from ..training.context import StepContext
from ..training.precision import precision
from .shared_out import shared_out


@torch.inference_mode()
def generate(
    model: Model,
    examples: Sequence[Example],
    options: Decoding | None = None,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
    retry: OomRetry | None = None,
) -> list[list[Generation]]:
    """Texts for examples, best first: `options.num_return_sequences` each. `inputs`: which of the model's inputs to
    read (all by default). Leaves the training mode as it was.

    A batch that runs out of memory is written in halves (samples are others then); raises RunError when a single
    example is too much. `retry`: shared by calls that go on from one another, so that none tries again what was too
    much before."""
    if batch_size < 1:
        raise DataError(f"batch_size must be 1 at least, and is {batch_size}")
    collate = Collator(model, inputs or model.inputs, objectives=())
    retry = retry or OomRetry("writing", ADVICE_FEWER_TEXTS)

    def texts(piece: Sequence[Example]) -> list[list[Generation]]:
        batch, decoding = collate(piece).to(model.device), options or Decoding()
        written = model.generator.generate(model, batch, decoding)
        return check_texts(written, batch.ids, decoding.num_return_sequences, model.generator)

    training = model.training
    model.eval()
    try:
        found: dict[int, list[Generation]] = {}
        for batch in by_length(collate.slots(examples), batch_size):
            pieces = retry.over([examples[index] for index in batch], texts)
            found |= zip(batch, (one for _, written in pieces for one in written), strict=True)
        return [found[index] for index in range(len(examples))]
    finally:
        model.train(training)


def generate_split(
    model: Model, context: StepContext, examples: Sequence[Example], decoding: Decoding, batch_size: int = 32
) -> None:
    """`generations.jsonl` in the step's folder. Sampling is drawn anew for every batch, so processes do not change it.

    A batch that runs out of memory is written in halves, by each process for itself. Greedy search and beams find the
    same texts then; samples are drawn anew for every piece, so they are others (and the same again where the cuts are
    the same)."""
    model.to(context.accelerator.device).eval()  # not in inference mode: what is moved in there cannot learn afterwards
    accelerator, step = context.accelerator, context.step
    collate = Collator(model, step.inputs, objectives=())
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    retry = context.retry("writing", ADVICE_FEWER_TEXTS, named=lambda index: examples[index].id)

    def texts(number: int, whole: Sequence[int], piece: Sequence[int]) -> list[list[Generation]]:
        batch = collate([examples[index] for index in piece]).to(accelerator.device)
        cut = piece if len(piece) < len(whole) else ()  # pieces draw anew, whole batches as they always did
        torch.manual_seed(seed_from(context.seed, context.name, "write", number, *cut))
        with precision(step.training.precision, accelerator.device):
            written = model.generator.generate(model, batch, decoding)
        return check_texts(written, batch.ids, decoding.num_return_sequences, model.generator)

    def work(number: int, whole: Sequence[int]) -> Iterator[tuple[int, list[Generation]]]:
        for piece, written in retry.over(whole, partial(texts, number, whole)):
            yield from zip(piece, written, strict=True)

    with torch.inference_mode(), torch.random.fork_rng(devices):
        found = shared_out(context, ("writing", "texts"), collate.slots(examples), batch_size, work)
    if accelerator.is_main_process:
        lines = [json.dumps([asdict(text) for text in texts], ensure_ascii=False) for texts in found]
        write_text(context.folder / "generations.jsonl", "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()
