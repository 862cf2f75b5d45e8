"""Requests that nobody should send, for `serve.py`: from the OpenAPI document, raw bytes, texts slow to split."""

from __future__ import annotations

import json
import random
import socket
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

HEAD = "POST /v1/words HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def from_document(url, cases):
    """Statuses of so many requests that fit the document, and as many that do not."""
    import requests
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis import GenerationMode

    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [found.ok() for found in schema.get_all_operations()]
    posts = [operation for operation in operations if operation.method.upper() == "POST"]
    each = -(-cases // (2 * len(posts)))
    statuses = Counter()
    session = requests.Session()
    for operation in posts:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=each,
                deadline=None,
                database=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            def ask(case):
                statuses[case.call(session=session, timeout=60).status_code] += 1

            ask()
    return statuses


def raw_bytes(generator):
    """One request of bytes: whole or cut off, deep, huge, binary, or no HTTP at all."""
    deep = generator.randrange(1, 100_000)
    body = generator.choice(
        [
            generator.randbytes(generator.randrange(5000)),
            b"[" * deep,
            b'{"sentences":' + b"[" * (deep // 2) + b"]" * (deep // 2) + b"}",
            b'{"text":"' + b"a" * generator.randrange(1 << 21) + b'"}',
            json.dumps({"sentences": [["a" * generator.randrange(3000)] * generator.randrange(3000)]}).encode(),
            json.dumps({"sentences": [["\x00\ud800😀"] * 3], "layers": generator.randrange(-9, 9)}).encode(),
            b'{"text":"a","layers":{"weights":[' + b"9" * 5000 + b",1,1]}}",
        ]
    )
    length = generator.choice([len(body), len(body), 2 * len(body) + 1, 10**12, -1])
    whole = f"{HEAD}Content-Length: {length}\r\nConnection: close\r\n\r\n".encode() + body
    chunked = f"{HEAD}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n{len(body):x}\r\n".encode() + body
    ended = chunked + b"\r\n0\r\n\r\n"
    return generator.choice([whole, whole, whole, ended, chunked, generator.randbytes(2000), whole[: len(whole) // 2]])


def send_bytes(port, message, patience):
    """The status that comes back, or what happens instead."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=patience) as connection:
            connection.sendall(message)
            answer = connection.recv(16)
    except TimeoutError:
        return "left waiting"
    except OSError:
        return "cut off"
    return answer.split()[1].decode() if answer.startswith(b"HTTP/1.1 ") else "cut off"


def measure_hostile(server, cases):
    """All of them, and a good request before and after."""
    url = f"http://127.0.0.1:{server.port}"
    good = json.dumps({"sentences": [["the", "bank"]], "layers": "mean"}).encode()

    def fine():
        asked = urllib.request.Request(f"{url}/v1/words", good, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.read()

    generator = random.Random(0)
    expected = fine()
    for _ in range(200):  # so that what is made at first use does not count as growth
        send_bytes(server.port, raw_bytes(generator), 0.05)
    before = server.megabytes
    raw = Counter(send_bytes(server.port, raw_bytes(generator), 0.1) for _ in range(cases // 5))
    between = server.megabytes
    made = from_document(url, cases - cases // 5)
    print(f"bytes: {dict(raw)}")
    print(f"from the document: {dict(made)}")
    print(f"memory: {before:.0f} MiB before, {between:.0f} after the bytes, {server.megabytes:.0f} after all")
    print(f"the next good request is answered as the first: {fine() == expected}")


def mixed_requests(request):
    """Requests of all kinds, good ones and bad ones, as bytes."""
    words = ["the", "bank", "of", "river", "naïve", "日本"]
    good = [{"sentences": [words[:size]], "layers": "mean", "format": "float32"} for size in range(1, 7)]
    good += [{"text": f"He sat on the bank {number}. It rained."} for number in range(20)]
    bad = [
        {"text": 7},
        {"sentences": [["x" * 2000]]},
        {"text": "a", "layers": 99},
        {"text": "\u2029" * 500},
        b"{",
        b"[[[[",
    ]
    others = [
        ("/v1/compare", {"sentences": ["the bank", "a bank of sand"], "word": "bank"}),
        ("/v1/embeddings", {"input": ["the bank", "a bank of sand"]}),
        ("/v1/neighbours", {"sentence": "the bank", "position": 1}),
        ("/v1/nothing", {}),
    ]
    return [*(request("/v1/words", each) for each in good + bad), *(request(*each) for each in others)]


def measure_attack(server, text, seconds=8.0):
    """The latency of /health while six requests with a text are split, and of an honest request beside them."""
    url = f"http://127.0.0.1:{server.port}"

    def post(asked):
        body = json.dumps(asked, ensure_ascii=False).encode()
        try:
            found = urllib.request.Request(f"{url}/v1/words", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(found, timeout=60) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return "cut off"

    def health():
        begin = time.perf_counter()
        with urllib.request.urlopen(f"{url}/health", timeout=60) as answer:
            answer.read()
        return 1000 * (time.perf_counter() - begin)

    quiet = sorted(health() for _ in range(200))
    attackers = [threading.Thread(target=post, args=({"text": text},)) for _ in range(6)]
    for attacker in attackers:
        attacker.start()
    end, waits, honest = time.perf_counter() + seconds, [], []
    while time.perf_counter() < end:
        waits.append(health())
        if len(waits) % 50 == 0:
            honest.append(post({"text": "He sat on the bank."}))
    waits.sort()
    print(f"{text[:2]!r} repeated to {len(text):,} characters, six times at once")
    for name, found in (("quiet", quiet), ("under attack", waits)):
        middle, late = found[len(found) // 2], found[int(0.99 * len(found))]
        print(f"  /health {name}: {len(found)} times, p50 {middle:.1f} ms, p99 {late:.1f}, max {found[-1]:.1f}")
    print(f"  honest requests meanwhile: {dict(Counter(honest))}")
