"""Requests that nobody should send, for `serve.py hostile`: schemathesis on the OpenAPI document, and raw bytes."""

from __future__ import annotations

import json
import random
import socket
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
