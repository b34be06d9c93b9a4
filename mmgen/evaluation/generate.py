"""Generate texts for examples or a split: prompts checked, work spread over processes, results in the split's order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import torch

from ..data.collate import Collator, by_length
from ..data.part_checks import write_texts
from ..data.seeds import seed_from
from ..decoding import DecodingConfig
from ..errors import DataError
from ..files import write_text
from ..model import Model
from ..oom import ADVICE_FEWER_TEXTS, OomRetry
from ..prompts import prompts_of
from ..recipe.tables import GENERATOR
from ..storage.generations import as_line
from ..tensors import Example, Generation
from ..training.context import StepContext
from ..training.precision import precision
from .distribute import run_distributed


@torch.inference_mode()
def generate(
    model: Model,
    examples: Sequence[Example],
    options: DecodingConfig | None = None,
    inputs: Sequence[str] | None = None,
    batch_size: int = 32,
    retry: OomRetry | None = None,
) -> list[list[Generation]]:
    """`options.texts` texts for each example, best first. `inputs`: the model's inputs to read (default:
    all). The training mode is unchanged afterwards.

    A batch that runs out of memory is split in halves (samples differ then). Raises RunError if a single example does
    not fit. `retry`: shared by successive calls, so that they do not retry batch sizes that were too large."""
    if batch_size < 1:
        raise DataError(f"batch_size must be at least 1, but is {batch_size}")
    collate = _build_collator(model, inputs or model.inputs)
    retry = retry or OomRetry("writing", ADVICE_FEWER_TEXTS)

    def texts(piece: Sequence[Example]) -> list[list[Generation]]:
        batch, decoding = collate(piece).to(model.device), options or model.decoding
        return write_texts(model, batch, decoding, piece)

    training = model.training
    model.eval()
    try:
        results: dict[int, list[Generation]] = {}
        for batch in by_length(collate.slots(examples), batch_size):
            pieces = retry.over([examples[index] for index in batch], texts)
            results |= zip(batch, (best_first for _, written in pieces for best_first in written), strict=True)
        return [results[index] for index in range(len(examples))]
    finally:
        model.train(training)


def generate_split(
    model: Model, context: StepContext, examples: Sequence[Example], decoding: DecodingConfig, batch_size: int = 32
) -> None:
    """Write `generations.jsonl` in the step's folder, see `split_texts`."""
    model.to(context.accelerator.device).eval()  # inference mode would keep moved parameters from training later
    accelerator = context.accelerator
    with torch.inference_mode():
        results = split_texts(model, context, examples, decoding, batch_size)
    if accelerator.is_main_process:
        lines = [as_line(texts) for texts in results]
        write_text(context.folder / "generations.jsonl", "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()


def split_texts(
    model: Model, context: StepContext, examples: Sequence[Example], decoding: DecodingConfig, batch_size: int = 32
) -> list[list[Generation]]:
    """The texts of a model in eval mode, in the main process. Each batch has its own random seed, so the number of
    processes does not change samples. torch's random state is as before afterwards.

    A batch that runs out of memory is split in halves, separately in each process. Greedy search and beam search find
    the same texts then; samples differ, since each piece has its own seed (the same splits give the same samples)."""
    accelerator, step = context.accelerator, context.step
    check_prompts(examples)
    collate = _build_collator(model, step.inputs)
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    retry = context.retry("writing", ADVICE_FEWER_TEXTS, named=lambda index: examples[index].id)

    def texts(number: int, batch_indices: Sequence[int], piece: Sequence[int]) -> list[list[Generation]]:
        shown = [examples[index] for index in piece]
        batch = collate(shown).to(accelerator.device)
        cut = piece if len(piece) < len(batch_indices) else ()  # the seed of a full batch does not depend on pieces
        torch.manual_seed(seed_from(context.seed, context.name, "write", number, *cut))
        with precision(step.training.precision, accelerator.device):
            return write_texts(model, batch, decoding, shown)

    def work(number: int, batch_indices: Sequence[int]) -> Iterator[tuple[int, list[Generation]]]:
        for piece, written in retry.over(batch_indices, partial(texts, number, batch_indices)):
            yield from zip(piece, written, strict=True)

    with torch.random.fork_rng(devices):
        return run_distributed(context, ("writing", "texts"), collate.slots(examples), batch_size, work)


def check_prompts(examples: Sequence[Example]) -> None:
    """Raises DataError for an example with several prompts: one text is scored, but each prompt would have its own."""
    for example in examples:
        if len(prompts := {*prompts_of(example)}) > 1:
            raise DataError(
                f"example '{example.id}' has {len(prompts)} different prompts; a split that is scored must have one "
                "example per prompt"
            )


def _build_collator(model: Model, inputs: Sequence[str]) -> Collator:
    """Reads these inputs, and prompts if the generator reads any."""
    objectives = (GENERATOR,) if model.generator.reader.reads_prompts else ()
    return Collator(model, inputs, objectives, predicting=True)
