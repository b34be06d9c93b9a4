"""Real out-of-memory: training and generation with too little memory, compared with the same without splits.

Everything is in fp32 without dropout, and compared to 1e-5: every update's loss and gradient norm, validation
losses, all weights; and every text. A case that never runs out of memory is a failure too."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor

from mmgen import Decoding
from mmgen.data.sources import Source
from mmgen.evaluation.generate import generate
from mmgen.oom import OomRetry
from mmgen.progress import Progress
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.tensors import Example
from mmgen.training.context import StepContext
from mmgen.training.train import train

from .little_memory import Memory
from .synthetic import Arguments, arguments, examples, model, tell, tidy

CLOSE = 1e-5
SHARES = (0.7, 0.4, 0.2)  # of the temporary memory without splits
SEARCHES = {"greedy": Decoding(), "4 beams": Decoding(num_beams=4)}
UNTAUGHT = "key.bias"  # the gradient of keys' biases is rounding alone, which Adam blows up
QUESTIONS = 5


class Told(Progress):
    """Collects messages."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)


@dataclass
class Learnt:
    """The result of a few updates: log, messages, all weights, and how far the weights have moved."""

    log: list[dict]
    cuts: int
    weights: Mapping[str, Tensor]
    moved: float
    memory: dict[str, int]


def learn(chosen: Arguments, memory: Memory, limit: int = 0, rows: int = 0) -> Learnt:
    """Six updates over two epochs at the paper's learning rate; memory is limited only with `limit` or `rows`."""
    training = Training(
        batch_size=QUESTIONS * chosen.images, epochs=2, learning_rate=2e-5, precision="fp32", checkpoint_every=1000
    )
    step, messages = Step(inputs=("image", "caption"), train=("image", "backbone"), training=training), Told()
    composed, memory_use = model(chosen), {}
    material = examples(chosen, 4 * chosen.images, QUESTIONS)
    validation, before = material[3 * chosen.images :], _weights(composed)
    memory_use["stays"] = 4 * sum(
        parameter.nbytes for parameter in composed.parameters()
    )  # weights, gradients, moments
    with tempfile.TemporaryDirectory() as folder:
        context = StepContext("cut", step, 0, Path(folder), Accelerator(cpu=not memory.on_gpu), messages)
        tight = memory.short(limit, composed, rows) if limit or rows else memory.measured(memory_use)
        with tight:
            train(composed, context, [Source(material[: 3 * chosen.images], validation)])
        log = [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    after = _weights(composed)
    del composed
    tidy(chosen.device)
    cuts = sum("out of memory" in line for line in messages.lines)
    return Learnt(log, cuts, after, _apart(before, after), memory_use)


def _weights(composed) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in state(composed).items()}


def _apart(left: Mapping[str, Tensor], right: Mapping[str, Tensor]) -> float:
    return max((left[name] - right[name]).abs().max().item() for name in left if not name.endswith(UNTAUGHT))


def compared(uncut: Learnt, cut: Learnt) -> dict:
    """The largest differences; of losses and norms over 1, relative to their size."""
    differences = {}
    for name in ("loss", "grad_norm", "validation_loss"):
        pairs = [(a[name], b[name]) for a, b in zip(uncut.log, cut.log, strict=True) if name in a]
        differences[name] = max(abs(a - b) / max(1.0, abs(a)) for a, b in pairs)
    return differences | {"weights": _apart(uncut.weights, cut.weights)}


def learning(chosen: Arguments) -> Iterator[dict]:
    """One case per share of the memory."""
    uncut = learn(chosen, Memory(chosen.device))
    stays, peak = uncut.memory["stays"], uncut.memory["peak"]
    for share in SHARES:
        memory = Memory(chosen.device)
        limit = int(stays + share * max(0, peak - stays))
        cut = learn(chosen, memory, limit, max(1, int(share * chosen.images)))
        differences = compared(uncut, cut)
        good = memory.failures > 0 and cut.log[-1].get("halved", 0) > 0 and max(differences.values()) <= CLOSE
        halved = cut.log[-1].get("halved", 0)
        case = {"work": "learning", "share": share, "peak": peak, "limit": limit, "ended": memory.failures}
        yield case | {"halved": halved, "moved": uncut.moved, "differences": differences, "good": good}


def writing(chosen: Arguments) -> Iterator[dict]:
    """Greedy and beam search with less than half of the memory give the same texts."""
    composed, material = model(chosen), examples(chosen, chosen.images, 1)
    stays = sum(parameter.nbytes for parameter in composed.parameters())
    for name, options in SEARCHES.items():
        memory, cases, said = Memory(chosen.device), {}, []
        with memory.measured(cases):
            uncut = _written(composed, material, options, said)
        tidy(chosen.device)
        limit = int(stays + 0.4 * max(0, cases["peak"] - stays))
        with memory.short(limit, composed, max(1, chosen.images // 3)):
            cut = _written(composed, material, options, said)
        tidy(chosen.device)
        same = sum(a.tokens == b.tokens for a, b in zip(uncut, cut, strict=True))
        score = max(abs(a.score - b.score) for a, b in zip(uncut, cut, strict=True))
        good = memory.failures > 0 and bool(said) and same == len(uncut) and score <= CLOSE
        case = {"work": f"writing, {name}", "share": 0.4, "peak": cases["peak"], "limit": limit}
        case |= {"ended": memory.failures, "halved": len(said), "differences": {"score": score}}
        yield case | {"same": same, "texts": len(uncut), "good": good}


@torch.inference_mode()
def _written(composed, material: Sequence[Example], options: Decoding, said: list[str]) -> list:
    retry = OomRetry("writing", "use fewer beams", say=said.append)
    generations = generate(composed, material, options, batch_size=len(material), retry=retry)
    return [texts[0] for texts in generations]


if __name__ == "__main__":
    options = arguments(__doc__, lambda parser: parser.add_argument("--images", type=int, default=64))
    every: list[dict] = []
    for case in itertools.chain(learning(options), writing(options)):
        every.append(case)
        tell({"cases": every})  # the last line counts, so what is known when the next case breaks is kept
    wrong = [f"{case['work']} with {case['share']:.0%}" for case in every if not case["good"]]
    if wrong:
        raise SystemExit(f"differs from the result without splits, or was never split: {', '.join(wrong)}")
