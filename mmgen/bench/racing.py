"""The race: contestants in turn, round after round, in one process; medians, ratios and their spread."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from ..decoding import Decoding
from ..training.precision import precision
from .contestants import Bert2Bert, Causal, Contestant, Naive, Ours, rows_of
from .counting import BERT2BERT, CAUSAL, CONTESTANTS, NAIVE, OURS, Shape, Work, learning, writing
from .material import build, examples, never_end

SEARCHES = {
    "greedy": Decoding(),
    "4 beams": Decoding(num_beams=4),
    "5 samples": Decoding(do_sample=True, num_return_sequences=5),
}
NAIVE_IMAGES = 8  # naive is measured on so many images at most: a question costs it the same on any number


@dataclass(frozen=True)
class Terms:
    """What a race is run under. `batch` counts images, `tokens` those of a question with its end."""

    shape: Shape = Shape()
    batch: int = 4
    tokens: int = 9
    rounds: int = 3
    device: str = "cpu"
    precision: str = "fp32"
    compile: bool = False
    dropout: float | None = None
    contestants: tuple[str, ...] = CONTESTANTS


@dataclass(frozen=True)
class Result:
    """One contestant in one case; seconds a question of every round."""

    case: str
    contestant: str
    seconds: tuple[float, ...]
    work: Work
    images: int  # measured on

    @property
    def median(self) -> float:
        return median(self.seconds)

    @property
    def spread(self) -> float:
        """Slowest less fastest round, over the median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


@dataclass(frozen=True)
class Ratio:
    """How many times longer than ours: the median over rounds, each round's own ratio taken first, and what was
    counted."""

    measured: float
    low: float
    high: float
    counted: float

    @classmethod
    def of(cls, other: Result, ours: Result) -> Ratio:
        rounds = [theirs / own for theirs, own in zip(other.seconds, ours.seconds, strict=True)]
        return cls(median(rounds), min(rounds), max(rounds), other.work.multiply_adds / ours.work.multiply_adds)

    @property
    def gap(self) -> float:
        """How far the measured ratio is from the counted one; 0.1 is a tenth better for ours than counted."""
        return self.measured / self.counted - 1


def race_learning(
    terms: Terms, questions: Sequence[int], told: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Learning with each number of questions an image."""
    with _entered(terms) as field:
        for contestant in field.values():
            contestant.module.train()
        results = []
        for count in questions:
            material = examples(terms.shape, field[OURS].module, terms.batch, count, terms.tokens)
            runs = {name: contestant.learn(_few(name, material)) for name, contestant in field.items()}
            work = {name: learning(terms.shape, name, count, terms.tokens) for name in field}
            results += _rounds(f"K = {count}", field, runs, work, terms, told)
        return results


@torch.inference_mode()
def race_writing(
    terms: Terms, searches: Mapping[str, Decoding], told: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Writing by each search; seconds are those of a text written side by side with the image's others."""
    with _entered(terms) as field:
        for contestant in field.values():
            contestant.module.eval()
        material = examples(terms.shape, field[OURS].module, terms.batch, 1, 2)
        results = []
        for name, options in searches.items():
            runs = {
                who: contestant.write(_few(who, material), options, terms.tokens) for who, contestant in field.items()
            }
            work = {who: writing(terms.shape, who, rows_of(options), terms.tokens) for who in field}
            results += _rounds(name, field, runs, work, terms, told)
        return results


class _entered:
    """The contestants of a race, by name, while their store of features is on disk."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms

    def __enter__(self) -> dict[str, Contestant]:
        terms, device = self.terms, torch.device(self.terms.device)
        self.folder = tempfile.TemporaryDirectory(prefix="mmgen-bench-")
        torch.manual_seed(0)
        ours = build(terms.shape, terms.batch, terms.tokens, Path(self.folder.name), terms.dropout)
        never_end(ours.backbone.model.get_output_embeddings(), ours.backbone.end_id)
        makers = {
            OURS: lambda: Ours(ours, device),
            NAIVE: lambda: Naive(ours, device),
            BERT2BERT: lambda: Bert2Bert(ours, terms.shape, device, terms.dropout),
            CAUSAL: lambda: Causal(ours, terms.shape, device, terms.dropout),
        }
        field = {name: makers[name]() for name in CONTESTANTS if name in terms.contestants or name == OURS}
        if terms.compile:
            for name in field:
                if name != NAIVE:  # it shares our encoder
                    field[name].compile()
        return field

    def __exit__(self, *_: object) -> None:
        self.folder.cleanup()


def _few(name: str, material: Sequence) -> Sequence:
    return material[:NAIVE_IMAGES] if name == NAIVE else material


def _rounds(
    case: str,
    field: Mapping[str, Contestant],
    runs: Mapping[str, Callable[[], int]],
    work: Mapping[str, Work],
    terms: Terms,
    told,
) -> list[Result]:
    """One round to warm up, then those that count, contestants in turn: A B C D A B C D."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(terms.rounds + 1):
        for name, run in runs.items():
            told(f"{case}: {name}, round {number} of {terms.rounds}" if number else f"{case}: {name}, warming up")
            seconds, count = timed(field[name], run, terms)
            if number:
                taken[name].append(seconds / count)
    images = {name: min(NAIVE_IMAGES, terms.batch) if name == NAIVE else terms.batch for name in runs}
    return [Result(case, name, tuple(seconds), work[name], images[name]) for name, seconds in taken.items()]


def timed(contestant: Contestant, run: Callable[[], int], terms: Terms) -> tuple[float, int]:
    """Seconds, and how many questions or texts that were."""
    device = torch.device(terms.device)
    contestant.module.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    _wait(device)
    began = time.perf_counter()
    with precision(terms.precision, device):
        count = run()
    _wait(device)
    return time.perf_counter() - began, count


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def settings(terms: Terms) -> dict:
    """The terms and the machine, for people and machines to read with the results."""
    import platform

    import transformers

    return {
        **asdict(terms),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "accelerator": torch.cuda.get_device_name(terms.device) if torch.device(terms.device).type == "cuda" else None,
    }


def _processor() -> str:
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
