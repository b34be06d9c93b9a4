"""Attention of one update's layers: SDPA with a boolean mask, as mmgen uses it, against flex attention.

Rows are laid out as in training: a picture and its caption, and five questions packed behind them. The mask of a batch
is built once, and all layers use it, forward and backward."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from mmgen.attention import visible
from mmgen.tensors import MASK, PREFIX, WRITTEN, Layout

from .synthetic import Arguments, arguments, heads, precision, tell, tidy, timed

QUESTIONS = 5


def layout(rows: int, prefix: int, words: int, device: str) -> Layout:
    """Rows of `prefix` input slots and of questions y_1..y_(T-1), m_1..m_T with T = `words`."""
    slots = [(PREFIX, 0, 0)] * prefix
    for group in range(1, QUESTIONS + 1):
        slots += [(WRITTEN, group, time) for time in range(1, words)]
        slots += [(MASK, group, time) for time in range(1, words + 1)]
    columns = torch.tensor(slots, device=device).T
    role, group, time = (column.expand(rows, -1) for column in columns)
    return Layout(role, group, time)


def with_sdpa(seen: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    mask = seen.unsqueeze(1)
    return lambda query, key, value: F.scaled_dot_product_attention(query, key, value, attn_mask=mask)


def with_flex(seen: Tensor, attend: Callable[..., Tensor]) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    rows, length, span = seen.shape
    blocks = create_block_mask(lambda b, h, q, k: seen[b, q, k], rows, None, length, span, device=str(seen.device))
    return lambda query, key, value: attend(query, key, value, block_mask=blocks)


def compare(chosen: Arguments, prefix: int, words: int, name: str) -> dict:
    """Milliseconds of an update's layers with either function, lowest first, and how far their results differ."""
    seen = visible(layout(chosen.rows, prefix, words, chosen.device))
    shape = (chosen.rows, heads(chosen.width), seen.shape[1], chosen.width // heads(chosen.width))
    kind = torch.bfloat16 if name == "bf16" else torch.float32
    on_gpu = chosen.device.startswith("cuda")  # flex attention has no backward pass on a CPU
    options = {"device": chosen.device, "dtype": kind, "requires_grad": on_gpu}
    query, key, value = (torch.randn(shape, **options) for _ in range(3))
    attend = torch.compile(flex_attention, dynamic=False) if on_gpu else flex_attention
    functions = {"sdpa": lambda: with_sdpa(seen), "flex": lambda: with_flex(seen, attend)}
    times: dict[str, list[float]] = {kind: [] for kind in functions}
    results = {}
    for _ in range(chosen.rounds + 2):  # the first two compile and warm up
        for system, build in functions.items():
            with timed(chosen.device) as taken, precision(name, chosen.device):
                attention = build()
                for _ in range(chosen.layers):
                    results[system] = attention(query, key, value)
                    if on_gpu:
                        results[system].sum().backward()
            times[system] += taken
    difference = float((results["sdpa"] - results["flex"]).detach().abs().max())
    milliseconds = {system: sorted(1000 * second for second in taken[2:]) for system, taken in times.items()}
    tidy(chosen.device)
    return {"slots": seen.shape[1], "precision": name, "rows": chosen.rows, "difference": difference, **milliseconds}


def _more(parser) -> None:
    parser.add_argument("--rows", type=int, default=26)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--prefixes", type=int, nargs="+", default=[20, 48, 512])


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    cases = [compare(options, prefix, 9, name) for name in ("bf16", "fp32") for prefix in options.prefixes]
    tell({"cases": cases})
