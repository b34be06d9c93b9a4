"""Milliseconds and passes per text, from left to right and in other orders, for several numbers of pictures at a time.

All texts have the same length, because the end token is forbidden."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from mmgen_any_order import AnyOrder, AnyOrderDecoding
from mmgen_any_order.generator import AnyOrderGenerator, BlocksOfOneGenerator
from mmgen_masked import Masked
from mmgen_masked.generator import MaskedGenerator

from mmgen import Decoding, DecodingConfig
from mmgen.data.collate import Collator
from mmgen.model import Model
from mmgen.objectives import Generator

from .synthetic import Arguments, arguments, examples, model, never_end, precision, tell, timed


def ways(composed: Model, length: int) -> Mapping[str, tuple[Generator, DecodingConfig]]:
    """A generator and its decoding for each way of writing."""
    backbone, options = composed.backbone, {"length": "end", "max_tokens": length}
    texts = AnyOrderGenerator(AnyOrder(**options), backbone)
    blocks = AnyOrderGenerator(AnyOrder(**options, block=4), backbone)
    return {
        "left to right": (MaskedGenerator(Masked(max_tokens=length), backbone), Decoding()),
        "blocks of 1": (
            BlocksOfOneGenerator(AnyOrder(**options, block=1), backbone),
            AnyOrderDecoding(trace=False),
        ),
        "any order": (texts, AnyOrderDecoding(trace=False)),
        "any order, 4 steps": (texts, AnyOrderDecoding(steps=4, trace=False)),
        "mask-predict, 4 steps": (texts, AnyOrderDecoding(steps=4, remask=True, trace=False)),
        "blocks of 4, 2 steps": (blocks, AnyOrderDecoding(steps=2, trace=False)),
    }


@torch.inference_mode()
def measure(chosen: Arguments) -> list[dict]:
    """For each way and number of pictures: the passes of a batch, and its seconds in each round."""
    composed = model(chosen, max_tokens=chosen.length).eval()
    never_end(composed)
    passes = [0]

    def count(*_: object) -> None:
        passes[0] += 1

    composed.backbone.model.base_model.register_forward_hook(count)
    figures = []
    for pictures in chosen.pictures:
        batch = Collator(composed, composed.inputs, objectives=())(examples(chosen, pictures, 1)).to(chosen.device)
        for way, (generator, decoding) in ways(composed, chosen.length).items():
            seconds = []
            for _ in range(chosen.rounds + 1):  # the first warms up
                passes[0] = 0
                with timed(chosen.device) as taken, precision("bf16", chosen.device):
                    generator.generate(composed, batch, decoding)
                seconds += taken
            case = {"way": way, "pictures": pictures, "tokens": chosen.length, "passes": passes[0]}
            figures.append(case | {"seconds": sorted(seconds[1:])})
    return figures


def _more(parser) -> None:
    parser.add_argument("--pictures", type=int, nargs="+", default=[1, 32, 256])
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)


if __name__ == "__main__":
    tell({"cases": measure(arguments(__doc__, _more))})
