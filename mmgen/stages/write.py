"""Write: one text (or several) for every example of a split, shared out over processes, in the split's order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from pydantic import TypeAdapter, ValidationError

from ..checkpoint import write_text
from ..configs import Decoding
from ..data import Collator, in_order, settle
from ..errors import RunError
from ..model import Model
from ..progress import Progress
from ..recipe import Step
from ..tensors import Example, Generation
from .optimizer import derive, precision

TEXTS = TypeAdapter(list[Generation])  # a line of generations.jsonl


@torch.inference_mode()
def write(
    model: Model,
    name: str,
    step: Step,
    examples: Sequence[Example],
    decoding: Decoding,
    *,
    seed: int,
    folder: Path,
    accelerator: Accelerator,
    progress: Progress,
    batch_size: int = 32,
) -> None:
    """`generations.jsonl` in the step's folder. Sampling is drawn anew for every batch, so processes do not change it."""
    model.to(accelerator.device).eval()
    collate = Collator(model, step.inputs, targets=False)
    found: list[tuple[int, list[Generation]]] = []
    devices = [accelerator.device] if accelerator.device.type == "cuda" else []
    with torch.random.fork_rng(devices), progress.task(f"{name}: writing", len(examples), "questions") as advance:
        for number, indices in enumerate(in_order(examples, batch_size)):
            if number % accelerator.num_processes == accelerator.process_index:
                batch = collate([settle(examples[index]) for index in indices]).to(accelerator.device)
                torch.manual_seed(derive(seed, name, "write", number))
                with precision(step.training.precision, accelerator.device):
                    found += zip(indices, model.generator.generate(model, batch, decoding), strict=True)
            advance(len(indices))
    if accelerator.num_processes > 1:
        found = gather_object(found)
    if accelerator.is_main_process:
        lines = [json.dumps([asdict(text) for text in texts], ensure_ascii=False) for _, texts in sorted(found, key=lambda pair: pair[0])]
        write_text(folder / "generations.jsonl", "".join(line + "\n" for line in lines))
    accelerator.wait_for_everyone()


def read(folder: Path) -> list[list[Generation]]:
    """What `write` wrote: the texts of every example, best first."""
    path = folder / "generations.jsonl"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RunError(f"{path}: missing; has this step been run?") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RunError(f"{path}: damaged: {error}; delete the file and run again") from None
    lines = text.removesuffix("\n").split("\n") if text else []  # other ends of lines may be in a text
    return [_texts(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _texts(line: str, place: str) -> list[Generation]:
    try:
        texts = TEXTS.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        raise RunError(f"{place}: damaged: {'.'.join(map(str, (*first['loc'], first['msg'])))}; delete the file and run again") from None
    if not texts:
        raise RunError(f"{place}: damaged: no text at all; delete the file and run again")
    return texts
