"""Timing: trains and generates with all systems in turn, round after round; medians, ratios, spread, the machine."""

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

from .flops import BERT2BERT, CAUSAL, NAIVE, OURS, SYSTEMS, Shape, Work, generation_work, training_work
from .systems import Bert2Bert, Causal, Naive, Ours, System, count_rows, our_model
from .workload import build, draw_examples, encoder_of, forbid_end

SEARCHES = {
    "greedy": Decoding(),
    "4 beams": Decoding(num_beams=4),
    "5 samples": Decoding(do_sample=True, num_return_sequences=5),
}
NAIVE_IMAGES = 8  # naive is timed on at most this many images: its cost per question does not depend on the number


@dataclass(frozen=True)
class Settings:
    """What is measured, and how. `batch` counts images; `tokens` counts a question's tokens with its end token."""

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
    """One system in one case: seconds per question of every round."""

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
        """(slowest - fastest round) / median."""
        return (max(self.seconds) - min(self.seconds)) / self.median


@dataclass(frozen=True)
class Ratio:
    """Time relative to ours: median, lowest and highest of the ratios of each round, and the ratio of counted work."""

    measured: float
    low: float
    high: float
    counted: float

    @classmethod
    def of(cls, result: Result, ours: Result) -> Ratio:
        ratios = [seconds / reference for seconds, reference in zip(result.seconds, ours.seconds, strict=True)]
        return cls(median(ratios), min(ratios), max(ratios), result.work.multiply_adds / ours.work.multiply_adds)

    @property
    def gap(self) -> float:
        """Relative distance of the measured ratio from the counted one; at 0.1, ours is 10 % better than counted."""
        return self.measured / self.counted - 1


def measure_training(
    settings: Settings, questions: Sequence[int], say: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Time training with each number of questions per image."""
    with prepare_systems(settings) as systems:
        for system in systems.values():
            system.module.train()
        results = []
        for count in questions:
            batch = draw_examples(settings.shape, our_model(systems), settings.batch, count, settings.tokens)
            runs = {name: system.prepare_training(_limit_images(name, batch)) for name, system in systems.items()}
            work = {name: training_work(settings.shape, name, count, settings.tokens) for name in systems}
            results += _run_rounds(f"K = {count}", systems, runs, work, settings, say)
        return results


@torch.inference_mode()
def measure_generation(
    settings: Settings, searches: Mapping[str, Decoding], say: Callable[[str], None] = lambda line: None
) -> list[Result]:
    """Time generation with each search; seconds are per text, where an image's texts are generated together."""
    with prepare_systems(settings) as systems:
        for system in systems.values():
            system.module.eval()
        batch = draw_examples(settings.shape, our_model(systems), settings.batch, 1, 2)
        results = []
        for search, options in searches.items():
            runs = {
                name: system.prepare_generation(_limit_images(name, batch), options, settings.tokens)
                for name, system in systems.items()
            }
            work = {
                name: generation_work(settings.shape, name, count_rows(options), settings.tokens) for name in systems
            }
            results += _run_rounds(search, systems, runs, work, settings, say)
        return results


@contextlib.contextmanager
def prepare_systems(settings: Settings) -> Iterator[dict[str, System]]:
    """The compared systems by name. Their feature store is on disk inside this context only."""
    device = torch.device(settings.device)
    with tempfile.TemporaryDirectory(prefix="mmgen-bench-") as folder:
        torch.manual_seed(0)
        ours = build(settings.shape, settings.batch, settings.tokens, Path(folder), settings.dropout)
        forbid_end(encoder_of(ours).get_output_embeddings(), ours.backbone.end_id)
        builders: dict[str, Callable[[], System]] = {
            OURS: lambda: Ours(ours, device),
            NAIVE: lambda: Naive(ours, device),
            BERT2BERT: lambda: Bert2Bert(ours, settings.shape, device, settings.dropout),
            CAUSAL: lambda: Causal(ours, settings.shape, device, settings.dropout),
        }
        systems = {name: builders[name]() for name in SYSTEMS if name in settings.systems or name == OURS}
        if settings.compile:
            for name in systems:
                if name != NAIVE:  # naive shares our encoder
                    systems[name].compile()
        yield systems


def _limit_images(name: str, batch: Sequence) -> Sequence:
    return batch[:NAIVE_IMAGES] if name == NAIVE else batch


def _run_rounds(
    case: str,
    systems: Mapping[str, System],
    runs: Mapping[str, Callable[[], int]],
    work: Mapping[str, Work],
    settings: Settings,
    say: Callable[[str], None],
) -> list[Result]:
    """One warm-up round, then the timed rounds, systems in turn: A B C D A B C D."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(settings.rounds + 1):
        for name, run in runs.items():
            say(f"{case}: {name}, round {number} of {settings.rounds}" if number else f"{case}: {name}, warming up")
            seconds, count = time_run(systems[name], run, settings)
            if number:
                times[name].append(seconds / count)
    images = {name: min(NAIVE_IMAGES, settings.batch) if name == NAIVE else settings.batch for name in runs}
    return [Result(case, name, tuple(seconds), work[name], images[name]) for name, seconds in times.items()]


def time_run(system: System, run: Callable[[], int], settings: Settings) -> tuple[float, int]:
    """Seconds, and the number of questions or texts processed in that time."""
    device = torch.device(settings.device)
    system.module.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    _synchronise(device)
    start = time.perf_counter()
    with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
        count = run()
    _synchronise(device)
    return time.perf_counter() - start, count


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def describe(settings: Settings) -> dict:
    """The settings and the machine, to be shown or stored with the results."""
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
