"""A synthetic model, pictures and questions of the sizes on the command line; shared by all measures.

Each word is one token, and the end token can be forbidden, so that every row has its stated length."""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import random
import string
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_regions import Regions
from mmgen_text import Text

from mmgen.model import Model, compose
from mmgen.parts import Record
from mmgen.tensors import Example

REGIONS, CAPTION = 36, 10  # of a picture; words
NEVER = -1e4  # a bias that keeps a token from being chosen
Arguments = argparse.Namespace


def arguments(description: str | None, more: Callable[[argparse.ArgumentParser], None] | None = None) -> Arguments:
    """Parse the command line: device, shape, and the options of a measure."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--device", default="cuda")
    for name, usual in (("layers", 12), ("width", 768), ("words", 30_522), ("features", 2048)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    if more:
        more(parser)
    return parser.parse_args()


def heads(width: int) -> int:
    return width // 64 if width % 64 == 0 else 4


def words(count: int) -> list[str]:
    """Words of four letters."""
    letters = itertools.product(string.ascii_lowercase, repeat=4)
    return ["".join(word) for word in itertools.islice(letters, count)]


def model(chosen: Arguments, max_tokens: int = 20, dropout: float = 0.0) -> Model:
    """The model on its device, with random weights from a fixed seed."""
    torch.manual_seed(0)
    sizes = {
        "num_hidden_layers": chosen.layers,
        "hidden_size": chosen.width,
        "num_attention_heads": heads(chosen.width),
    }
    made_up = Regions(width=chosen.features, fingerprint={"made": "random numbers"}, max_regions=REGIONS)
    composed = compose(
        Bert(**sizes, vocab_size=chosen.words, dropout=dropout),
        {"image": made_up.model_copy(update={"fields": ("image",)}), "caption": Text(fields=("caption",))},
        Masked(max_tokens=max_tokens),
        texts=words(chosen.words),
    )
    return composed.to(chosen.device)


def never_end(composed: Model) -> None:
    """Forbid the end token, so that every text has the maximum length."""
    with torch.no_grad():
        composed.backbone.model.get_output_embeddings().bias[composed.backbone.end_id] = NEVER


def record(key: str, features: int, draw: np.random.Generator) -> Record:
    """A picture's features and boxes."""
    corners = np.sort(draw.random((REGIONS, 2, 2), np.float32), 1).reshape(-1, 4)
    return Record(key, draw.standard_normal((REGIONS, features), np.float32).astype(np.float16), corners)


def texts(count: int, seed: int) -> Iterator[Callable[[int], str]]:
    """For each example, a function that makes texts of a given number of words."""
    draw = random.Random(seed)
    known = words(min(count, 30_000))
    while True:
        yield lambda length: " ".join(draw.choices(known, k=length))


def examples(chosen: Arguments, count: int, questions: int = 5, length: int = 8) -> list[Example]:
    """Examples with features, and with captions and questions of this many words."""
    draw, makers = np.random.default_rng(0), texts(chosen.words - 100, 0)
    return [
        Example(
            str(number),
            {"image": record(str(number), chosen.features, draw), "caption": write(CAPTION)},
            tuple(write(length) for _ in range(questions)),
        )
        for number, write in zip(range(count), makers, strict=False)
    ]


def precision(name: str, device: str):
    """A context for bf16, or for float32 without autocast."""
    return torch.autocast(torch.device(device).type, torch.bfloat16) if name == "bf16" else nullcontext()


@contextmanager
def timed(device: str) -> Iterator[list[float]]:
    """Seconds until the device has finished its work."""
    times: list[float] = []
    wait(device)
    began = time.perf_counter()
    yield times
    wait(device)
    times.append(time.perf_counter() - began)


def wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def tidy(device: str) -> None:
    """Return unused memory to the device."""
    gc.collect()
    if device.startswith("cuda"):
        torch.cuda.empty_cache()


def tell(figures: dict) -> None:
    print(json.dumps(figures), flush=True)
