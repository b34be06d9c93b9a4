"""A pass under torch's profiler: how long the device was busy and with what, how often the CPU waited for it, and FLOP.

CPU operators have the time of the kernels that they start, so only events *of the device* count, without the spans
that annotations add; overlapping kernels count once."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from .synthetic import timed

SHOWN = 8  # kernels


def kernels(events: Iterable) -> list[tuple[str, float, float]]:
    """(name, start, end) in microseconds of all work of the device itself."""
    device_events = [event for event in events if event.device_type == DeviceType.CUDA]
    spans = [event for event in device_events if not getattr(event, "is_user_annotation", False)]
    return [(event.name, event.time_range.start, event.time_range.end) for event in spans]


def busy(spans: Iterable[tuple[str, float, float]]) -> float:
    """Microseconds in which at least one kernel ran."""
    total, until = 0.0, float("-inf")
    for _, start, end in sorted(spans, key=lambda kernel: kernel[1]):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def traced(work: Callable[[], object], device: str) -> dict:
    """Profile one call of `work`, after a warm-up. Seconds are those of a call without the profiler."""
    with timed(device) as seconds:
        work()
    figures: dict = {"seconds": seconds[0], "flop": counted(work)}
    if not device.startswith("cuda"):
        return figures
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as watched, timed(device) as slowed:
        work()
    ran = kernels(watched.events())
    times = Counter()
    for name, start, end in ran:
        times[name] += end - start
    top = [(name[:90], time / 1e6) for name, time in times.most_common(SHOWN)]
    figures |= {"busy": busy(ran) / 1e6, "kernels": len(ran), "top": top, "profiled": slowed[0]}
    return figures | {"waits": waits(work)}


def counted(work: Callable[[], object]) -> int:
    """Floating-point operations of matrix products and attention, forward and backward; a multiply-add counts as
    two."""
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


def waits(work: Callable[[], object]) -> int:
    """How often the CPU waits for the device during the work."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("warn")
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            work()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in heard)
