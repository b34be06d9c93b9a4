"""Greedy generation for many pictures, and single passes of training and generation under the profiler.

All texts have the same length (the end token is forbidden), the most expensive case: 20 tokens is the generator's
limit, and 10 tokens is a question of ordinary length."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from mmgen import Decoding
from mmgen.data.collate import Collator
from mmgen.evaluation.generate import generate
from mmgen.tensors import Example

from .synthetic import Arguments, arguments, examples, model, never_end, precision, tell, tidy, timed
from .tracing import traced

PRECISIONS = ("bf16", "fp32")
TRAINED, QUESTIONS = 26, 5  # images of an update of the paper's 128 pairs


def writing(chosen: Arguments) -> list[dict]:
    """Seconds for all pictures, including collating, for each precision, length and batch size."""
    figures = []
    for length in chosen.lengths:
        composed, material = model(chosen, max_tokens=length), examples(chosen, chosen.written, 1)
        never_end(composed)
        for name in chosen.precisions:
            for batch in chosen.batches:
                seconds = []
                for _ in range(chosen.rounds + 1):  # the first warms up
                    with timed(chosen.device) as taken, precision(name, chosen.device):
                        generate(composed, material, Decoding(), batch_size=batch)
                    seconds += taken
                case = {"tokens": length, "precision": name, "batch": batch, "pictures": chosen.written}
                collating = collated(composed, material, batch, chosen.device)
                figures.append(case | {"seconds": sorted(seconds[1:]), "collating": collating})
        del composed
        tidy(chosen.device)
    return figures


def collated(composed, material: Sequence[Example], batch: int, device: str) -> float:
    """Seconds in which batches are collated and moved to the device."""
    collate = Collator(composed, composed.inputs, objectives=())
    with timed(device) as seconds:
        for first in range(0, len(material), batch):
            collate(material[first : first + batch]).to(device)
    return seconds[0]


def profiles(chosen: Arguments) -> dict[str, dict]:
    """Profile one update's forward and backward pass, and the generation of one batch."""
    composed = model(chosen)
    never_end(composed)
    device, batch = chosen.device, min(chosen.batches[-1], 256)
    learn = Collator(composed, composed.inputs)(examples(chosen, TRAINED, QUESTIONS)).to(device)
    write = Collator(composed, composed.inputs, objectives=())(examples(chosen, batch, 1)).to(device)
    figures = {}

    def update() -> None:
        composed.zero_grad(set_to_none=True)
        with precision("bf16", device):
            loss = composed(learn)
        loss.sums["generator.loss"].backward()

    @torch.inference_mode()
    def greedy() -> None:
        with precision("bf16", device):
            composed.generator.generate(composed, write, Decoding())

    for name, work, training in (("training", update, True), ("writing", greedy, False)):
        composed.train(training)
        work()
        figures[name] = {"precision": "bf16", "rows": TRAINED if training else batch, **traced(work, device)}
    return figures


def _more(parser) -> None:
    parser.add_argument("what", choices=["writing", "profiles"])
    parser.add_argument("--written", type=int, default=1250)
    parser.add_argument("--lengths", type=int, nargs="+", default=[20, 10])
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[32, 256, 1250])


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    tell({"cases": writing(options)} if options.what == "writing" else {"passes": profiles(options)})
