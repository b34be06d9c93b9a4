"""Measuring: systems in turn, round after round, in one process; medians, ratios and their spread."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import torch

from mmgen.decoding import Decoding
from mmgen.model import Model

from .flops import BERT2BERT, CAUSAL, NAIVE, OURS, SYSTEMS, Shape, Work, learning, writing
from .systems import Bert2Bert, Causal, Naive, Ours, System, rows_of
from .workload import build, encoder_of, examples, forbid_end

SEARCHES = {
    "greedy": Decoding(),
    "4 beams": Decoding(num_beams=4),
    "5 samples": Decoding(do_sample=True, num_return_sequences=5),
}
NAIVE_IMAGES = 8  # naive is measured on so many images at most: a question costs it the same on any number


@dataclass(frozen=True)
class Settings:
    """What is measured, and how. `batch` counts images, `tokens` those of a question with its end."""

    shape: Shape = Shape()
    batch: int = 4
    tokens: int = 9
    rounds: int = 3
    device: str = "cpu"
    precision: str = "fp32"
    compile: bool = False
    dropout: float | None = None
    systems: tuple[str, ...] = SYSTEMS


@dataclass(frozen=True)
class Result:
    """One system in one case; seconds a question of every round."""

    case: str
    system: str
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


def measure_learning(
    settings: Settings, questions: Sequence[int], say: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Learning with each number of questions an image."""
    with prepared(settings) as systems:
        for system in systems.values():
            system.module.train()
        results = []
        for count in questions:
            chosen = examples(settings.shape, model_of(systems), settings.batch, count, settings.tokens)
            runs = {name: system.learn(_few(name, chosen)) for name, system in systems.items()}
            work = {name: learning(settings.shape, name, count, settings.tokens) for name in systems}
            results += _rounds(f"K = {count}", systems, runs, work, settings, say)
        return results


@torch.inference_mode()
def measure_writing(
    settings: Settings, searches: Mapping[str, Decoding], say: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Writing by each search; seconds are those of a text written side by side with the image's others."""
    with prepared(settings) as systems:
        for system in systems.values():
            system.module.eval()
        chosen = examples(settings.shape, model_of(systems), settings.batch, 1, 2)
        results = []
        for name, options in searches.items():
            runs = {who: system.write(_few(who, chosen), options, settings.tokens) for who, system in systems.items()}
            work = {who: writing(settings.shape, who, rows_of(options), settings.tokens) for who in systems}
            results += _rounds(name, systems, runs, work, settings, say)
        return results


@contextlib.contextmanager
def prepared(settings: Settings) -> Iterator[dict[str, System]]:
    """The systems that are compared, by name, while their store of features is on the disk."""
    device = torch.device(settings.device)
    with tempfile.TemporaryDirectory(prefix="mmgen-bench-") as folder:
        torch.manual_seed(0)
        ours = build(settings.shape, settings.batch, settings.tokens, Path(folder), settings.dropout)
        forbid_end(encoder_of(ours).get_output_embeddings(), ours.backbone.end_id)
        makers: dict[str, Callable[[], System]] = {
            OURS: lambda: Ours(ours, device),
            NAIVE: lambda: Naive(ours, device),
            BERT2BERT: lambda: Bert2Bert(ours, settings.shape, device, settings.dropout),
            CAUSAL: lambda: Causal(ours, settings.shape, device, settings.dropout),
        }
        systems = {name: makers[name]() for name in SYSTEMS if name in settings.systems or name == OURS}
        if settings.compile:
            for name in systems:
                if name != NAIVE:  # it shares our encoder
                    systems[name].compile()
        yield systems


def model_of(systems: Mapping[str, System]) -> Model:
    """Our own model among the systems: its vocabulary is what every example is written in."""
    ours = systems[OURS]
    assert isinstance(ours, Ours)
    return ours.module


def _few(name: str, chosen: Sequence) -> Sequence:
    return chosen[:NAIVE_IMAGES] if name == NAIVE else chosen


def _rounds(
    case: str,
    systems: Mapping[str, System],
    runs: Mapping[str, Callable[[], int]],
    work: Mapping[str, Work],
    settings: Settings,
    say: Callable[[str], None],
) -> list[Result]:
    """One round to warm up, then those that count, systems in turn: A B C D A B C D."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(settings.rounds + 1):
        for name, run in runs.items():
            say(f"{case}: {name}, round {number} of {settings.rounds}" if number else f"{case}: {name}, warming up")
            seconds, count = timed(systems[name], run, settings)
            if number:
                taken[name].append(seconds / count)
    images = {name: min(NAIVE_IMAGES, settings.batch) if name == NAIVE else settings.batch for name in runs}
    return [Result(case, name, tuple(seconds), work[name], images[name]) for name, seconds in taken.items()]


def timed(system: System, run: Callable[[], int], settings: Settings) -> tuple[float, int]:
    """Seconds, and how many questions or texts that were."""
    device = torch.device(settings.device)
    system.module.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    _wait(device)
    began = time.perf_counter()
    with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
        count = run()
    _wait(device)
    return time.perf_counter() - began, count


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def described(settings: Settings) -> dict:
    """The settings and the machine, for people and machines to read with the results."""
    import platform

    import transformers

    return {
        **asdict(settings),
        "processor": _processor(),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(terse=True),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "accelerator": torch.cuda.get_device_name(settings.device)
        if torch.device(settings.device).type == "cuda"
        else None,
    }


def _processor() -> str:
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
