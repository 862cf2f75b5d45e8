"""Metrics of the server in the Prometheus text format: counters, histograms and gauges."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import accumulate

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
WORDS = (1, 8, 32, 128, 256, 512, 1024, 2048, 4096)
Labels = tuple[tuple[str, str], ...]


class Counter:
    """A Prometheus counter with labels. Used from the event loop's thread only."""

    kind = "counter"

    def __init__(self) -> None:
        self._values: defaultdict[Labels, float] = defaultdict(float)

    def add(self, amount: float = 1, **labels: str) -> None:
        """Increase the counter with these labels."""
        self._values[tuple(labels.items())] += amount

    def lines(self, name: str) -> Iterable[str]:
        """The lines of the Prometheus text format."""
        return [f"{name}{_labels(labels)} {value:g}" for labels, value in self._values.items()] or [f"{name} 0"]


class Histogram:
    """A Prometheus histogram: cumulative counts of observations by upper bound."""

    kind = "histogram"

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count one observation of a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self, name: str) -> Iterable[str]:
        """The lines of the Prometheus text format."""
        bounds = [*(f"{bound:g}" for bound in self._bounds), "+Inf"]
        sums = list(accumulate(self._counts))
        buckets = [f'{name}_bucket{{le="{bound}"}} {count}' for bound, count in zip(bounds, sums, strict=True)]
        return [*buckets, f"{name}_sum {self._sum:g}", f"{name}_count {sums[-1]}"]


class Gauge:
    """A Prometheus gauge: a number that goes up and down, read at every scrape."""

    kind = "gauge"

    def __init__(self, read: Callable[[], float]) -> None:
        self._read = read

    def lines(self, name: str) -> Iterable[str]:
        """The lines of the Prometheus text format."""
        return [f"{name} {self._read():g}"]


class Metrics:
    """All metrics of the server, by name and help text."""

    def __init__(self) -> None:
        self.requests = Counter()
        self.seconds = Histogram(SECONDS)
        self.words = Counter()
        self.batches = Histogram(WORDS)
        self.dropped = Counter()
        self._metrics: list[tuple[str, str, Counter | Histogram | Gauge]] = [
            ("polyseme_requests_total", "Requests by route and status.", self.requests),
            ("polyseme_request_seconds", "Time from the start of a request to the end of its response.", self.seconds),
            ("polyseme_words_total", "Words computed, by model.", self.words),
            ("polyseme_batch_words", "Words computed in one batch.", self.batches),
            ("polyseme_dropped_total", "Accepted requests that were dropped, by reason.", self.dropped),
        ]

    def watch(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        """Add a gauge that reads a number."""
        self._metrics.append((name, help_text, Gauge(read)))

    def text(self) -> str:
        """All metrics in the Prometheus text format."""
        lines = []
        for name, help_text, metric in self._metrics:
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {metric.kind}", *metric.lines(name)]
        return "\n".join(lines) + "\n"


def _labels(labels: Labels) -> str:
    pairs = [f'{name}="{_escaped(value)}"' for name, value in labels]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
