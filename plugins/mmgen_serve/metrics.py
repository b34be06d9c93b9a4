"""Counts of the service, in the text format of Prometheus."""

from __future__ import annotations

import threading
from collections import Counter

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # upper ends of a histogram's buckets
SIZES = (1, 2, 4, 8, 16, 32)
HEADER = "# HELP {name} {text}\n# TYPE {name} {kind}"


class Metrics:
    """Counts requests and batches. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()  # (route, status)
        self._durations: Counter[float] = Counter()  # bucket -> requests
        self._batches: Counter[float] = Counter()
        self._total_seconds = 0.0
        self._batched = 0

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request. `status` 0: the client went away."""
        with self._lock:
            self._requests[route, status] += 1
            self._durations[_bucket_of(seconds, SECONDS)] += 1
            self._total_seconds += seconds

    def count_batch(self, size: int) -> None:
        """Count a batch of the model."""
        with self._lock:
            self._batches[_bucket_of(size, SIZES)] += 1
            self._batched += size

    def text(self, waiting: int) -> str:
        """All counts. `waiting`: requests that are not answered yet."""
        with self._lock:
            lines = [HEADER.format(name="mmgen_requests_total", text="Requests by route and status.", kind="counter")]
            lines += [
                f'mmgen_requests_total{{route="{route}",status="{status}"}} {count}'
                for (route, status), count in sorted(self._requests.items())
            ]
            lines += _histogram_lines(
                "mmgen_request_seconds", "Seconds from a request to its response.", self._durations, SECONDS
            )
            lines += [f"mmgen_request_seconds_sum {self._total_seconds:.6f}"]
            lines += _histogram_lines(
                "mmgen_batch_size", "Requests that the model answered together.", self._batches, SIZES
            )
            lines += [f"mmgen_batch_size_sum {self._batched}"]
        lines += [HEADER.format(name="mmgen_waiting", text="Requests that are not answered yet.", kind="gauge")]
        return "\n".join([*lines, f"mmgen_waiting {waiting}", ""])


def _bucket_of(value: float, ends: tuple[float, ...]) -> float:
    return next((end for end in ends if value <= end), float("inf"))


def _histogram_lines(name: str, text: str, counts: Counter[float], ends: tuple[float, ...]) -> list[str]:
    lines, total = [HEADER.format(name=name, text=text, kind="histogram")], 0
    for end in (*ends, float("inf")):
        total += counts[end]
        lines.append(f'{name}_bucket{{le="{"+Inf" if end == float("inf") else f"{end:g}"}"}} {total}')
    return [*lines, f"{name}_count {total}"]
