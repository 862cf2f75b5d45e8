"""The server under load, on the same cores as those who load it.

    python benchmarks/serve.py load --model MODEL        words a second beside those of `polyseme embed`, and latencies
    python benchmarks/serve.py overload --model MODEL    ten times as many requests as can be answered
    python benchmarks/serve.py hostile --model MODEL     malformed requests by the thousand, then a good one
    python benchmarks/serve.py attack --model MODEL      /health while hostile texts are split; then SIGTERM
    python benchmarks/serve.py long --model MODEL        100,000 requests of all kinds: memory every tenth of them
    python benchmarks/serve.py stop --model MODEL        SIGTERM under load, kill -9 under load, and a new start

The client is bounded: so many connections, each with one request under way. Its share of the processor counts against
the server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from serve_hostile import measure_attack, measure_hostile, mixed_requests

import polyseme
from polyseme.corpus.uses import bundled_sentences

WORDS = 20


@dataclass
class Tally:
    """What came back."""

    statuses: Counter = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of those answered
    lost: list[float] = field(default_factory=list)  # when requests without an answer were sent

    def percentile(self, share):
        """Milliseconds."""
        return float(np.percentile(self.seconds, share)) * 1000 if self.seconds else float("nan")


class Server:
    """`polyseme serve` as a process of its own."""

    def __init__(self, model, *options):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        begin = time.perf_counter()
        command = [sys.executable, "-m", "polyseme", "serve", "--model", model, "--port", str(self.port), *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while b"200 OK" not in self._get("/ready"):
            time.sleep(0.02)
        self.ready_after = time.perf_counter() - begin

    def _get(self, path):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                return b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except OSError:
            return b""

    @property
    def cpu_seconds(self):
        """Of all its threads so far."""
        times = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self):
        """In memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20

    def stop(self, how=signal.SIGTERM):
        """Send a signal, and wait for the end."""
        self.process.send_signal(how)
        return self.process.wait(60)


def request(path, asked, head=""):
    body = json.dumps(asked).encode() if not isinstance(asked, bytes) else asked
    about = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    return f"{about}{head}\r\n".encode() + body


async def answer(reader):
    """The status, and the body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
    closing = "connection: close" in lines
    return int(lines[0].split()[1]), await reader.readexactly(length), closing


async def visitor(port, requests, tally, until, pause=0.0):
    """One connection that asks, waits for the answer, and asks again."""
    while time.perf_counter() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        except OSError:
            return
        try:
            closing = False
            while not closing and time.perf_counter() < until:
                begin = time.perf_counter()
                writer.write(random.choice(requests))
                status, _, closing = await answer(reader)
                tally.statuses[status] += 1
                if status == 200:
                    tally.seconds.append(time.perf_counter() - begin)
                if pause:
                    await asyncio.sleep(random.uniform(0, 2 * pause))
        except (OSError, asyncio.IncompleteReadError):
            tally.lost.append(begin)
        finally:
            writer.close()


def load(port, requests, connections, seconds, pause=0.0, during=None):
    """So many connections at once; what they got, and how long it took."""

    async def everybody():
        tally, begin = Tally(), time.perf_counter()
        visits = [visitor(port, requests, tally, begin + seconds, pause) for _ in range(connections)]
        others = [asyncio.to_thread(during)] if during else []
        await asyncio.gather(*visits, *others)
        return tally, time.perf_counter() - begin

    return asyncio.run(everybody())


def sentences(count=400):
    words = [word for sentence in bundled_sentences() for word in sentence]
    shuffled = random.Random(0)
    return [shuffled.choices(words, k=WORDS) for _ in range(count)]


class Offline:
    """The same model in this process, as `polyseme embed` has it."""

    def __init__(self, options):
        self.encoder = polyseme.load(options.model, precision=options.precision)
        self.sentences = sentences()
        list(self.encoder.embed(self.sentences))

    def rate(self, seconds=4.0):
        """Words a second, now."""
        done, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            done += sum(vectors.shape[1] for vectors in self.encoder.embed(self.sentences))
        return done / (time.perf_counter() - begin)


def measure_load(options):
    """In turns with the offline rate, so that whatever else the machine does hits both."""
    offline = Offline(options)
    server = Server(options.model, "--precision", options.precision)
    time.sleep(3)  # the neighbours' index is embedded in the background
    print("| form | offline words/s | words/s | of offline | p50 ms | p99 ms | statuses | lost | MiB |")
    print("|---|--:|--:|--:|--:|--:|---|--:|--:|")
    for form in ("float32", "float16", "json"):
        requests = [request("/v1/words", {"sentences": [words], "format": form}) for words in sentences()]
        rates, tallies = [], []
        for _ in range(options.rounds):
            before = offline.rate()
            tally, seconds = load(server.port, requests, options.connections, options.seconds)
            beside = (before + offline.rate()) / 2
            rates.append((tally.statuses[200] * WORDS / seconds, beside))
            tallies.append(tally)
        whole = Tally(
            sum((each.statuses for each in tallies), Counter()),
            [second for each in tallies for second in each.seconds],
            [moment for each in tallies for moment in each.lost],
        )
        rate, beside = np.median(rates, axis=0)
        shares = [served / alone for served, alone in rates]
        print(
            f"| {form} | {beside:,.0f} | {rate:,.0f} "
            f"| {np.median(shares):.0%} ({min(shares):.0%} to {max(shares):.0%}) "
            f"| {whole.percentile(50):.0f} | {whole.percentile(99):.0f} | {dict(whole.statuses)} | {len(whole.lost)} "
            f"| {server.megabytes:.0f} |",
            flush=True,
        )
    server.stop()


def measure_overload(options):
    many = 5  # sentences of a request, so that the client can ask for ten times as much
    capacity = Offline(options).rate() / WORDS / many
    server = Server(options.model, "--precision", options.precision)
    time.sleep(3)
    some = sentences()
    requests = [
        request("/v1/words", {"sentences": some[first : first + many], "format": "float32"})
        for first in range(0, len(some), many)
    ]
    before, connections = server.megabytes, 500
    tally, seconds = load(server.port, requests, connections, options.seconds, pause=connections / (20 * capacity))
    asked, answered = (sum(tally.statuses.values()) / seconds, tally.statuses[200] * WORDS * many / seconds)
    print(f"capacity about {capacity:.0f} requests/s; {asked:.0f}/s asked over {connections} connections")
    print(f"statuses {dict(tally.statuses)}, lost {len(tally.lost)}; {answered:,.0f} words/s answered")
    print(
        f"accepted: p50 {tally.percentile(50):.0f} ms, p99 {tally.percentile(99):.0f}, max {tally.percentile(100):.0f}"
    )
    print(f"memory: {before:.0f} MiB before, {server.megabytes:.0f} after")
    server.stop()


def measure_stop(options):
    requests = [request("/v1/words", {"sentences": [words], "format": "float32"}) for words in sentences()]

    for how in (signal.SIGTERM, signal.SIGKILL):
        server = Server(options.model, "--precision", options.precision)

        struck = []

        def strike(server=server, how=how, struck=struck):
            time.sleep(4)
            struck.append(time.perf_counter())
            server.process.send_signal(how)
            server.process.wait()

        tally, _ = load(server.port, requests, options.connections, 8, during=strike)
        before = sum(moment < struck[0] for moment in tally.lost)
        print(
            f"{how.name} under load: exit status {server.process.returncode}, {dict(tally.statuses)}; "
            f"without an answer: {before} sent before it, {len(tally.lost) - before} after"
        )
    server = Server(options.model, "--precision", options.precision)
    print(f"new start: ready after {server.ready_after:.1f} s, {server.cpu_seconds:.1f} s of which it computed")
    server.stop()


def hostile(options):
    server = Server(options.model, "--precision", options.precision)
    time.sleep(3)
    measure_hostile(server, options.cases)
    server.stop()


def attack(options):
    for text in ("\u2029" * 340_000, "1," * 500_000):
        server = Server(options.model, "--precision", options.precision, "--limit", "drain_seconds=5")
        measure_attack(server, text)
        begin = time.perf_counter()
        print(f"SIGTERM while busy, drain_seconds=5: exit status {server.stop()}, {time.perf_counter() - begin:.1f} s")
    server = Server(options.model, "--precision", options.precision)
    begin = time.perf_counter()
    print(f"SIGTERM while idle: exit status {server.stop()}, {time.perf_counter() - begin:.1f} s")


def measure_long(options):
    server = Server(options.model, "--precision", options.precision)
    requests, total = mixed_requests(request), Counter()
    for tenth in range(11):  # the first is a warm-up
        tally = send_all(server.port, requests, options.connections, options.cases // (10 if tenth else 20))
        total += tally.statuses
        print(f"{total.total():,} requests: {server.megabytes:.0f} MiB, lost {len(tally.lost)}", flush=True)
    print(f"statuses {dict(total)}; exit status {server.stop()}")


def send_all(port, requests, connections, count):
    """So many requests over some connections."""
    left = iter(range(count))

    class Enough:
        """Compares as the end of time, until all requests are sent."""

        def __gt__(self, _):
            return next(left, None) is not None

    async def everybody():
        tally = Tally()
        await asyncio.gather(*(visitor(port, requests, tally, Enough()) for _ in range(connections)))
        return tally

    return asyncio.run(everybody())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    measures = {"load": measure_load, "overload": measure_overload, "stop": measure_stop, "hostile": hostile}
    measures |= {"attack": attack, "long": measure_long}
    parser.add_argument("what", choices=measures)
    parser.add_argument("--model", required=True)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3, help="of load and offline in turns")
    parser.add_argument("--cases", type=int, default=10_000, help="of hostile requests")
    options = parser.parse_args()
    measures[options.what](options)


if __name__ == "__main__":
    main()
