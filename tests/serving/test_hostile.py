"""Attacks on a server: slow, endless and vanishing clients, poisoned company, floods; nobody else suffers."""

import gc
import json
import logging
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from time import perf_counter

import numpy as np
import pytest
from server_fixture import BlockedEncoder, make_catalogue, raw_request, running, until
from tiny_models import make_encoder

from polyseme.errors import InputError
from polyseme.serving.engine import splitter
from polyseme.serving.engine.catalogue import Catalogue, ServedModel

FINE = {"sentences": [["the", "bank"]], "layers": 0}


@pytest.fixture
def pool():
    with ThreadPoolExecutor(12) as it:
        yield it


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def is_quiet(server):
    service = server.service
    return not (service.in_flight or service.admission.words or service.batcher.waiting)


@pytest.fixture
def stuck(monkeypatch):
    """A text is never split, as if the tokenizer took for ever."""
    monkeypatch.setattr(splitter, "_CODE", "import time; time.sleep(600)")


def test_health_is_answered_at_once_while_texts_are_split(stuck, pool):
    with running(make_catalogue(), drain_seconds=0.3) as server:
        attack = [pool.submit(server.post, "/v1/words", {"text": "\u2029" * size}) for size in (9, 50_000) * 3]
        until(lambda: server.service.in_flight == len(attack))
        waits = []
        for _ in range(30):
            start = perf_counter()
            assert server.get("/health")[0].status == 200
            waits.append(perf_counter() - start)
        assert server.post("/v1/words", FINE)[0] == 200
        until(lambda: server.service.in_flight == len(attack))
        server.server.handle_exit(signal.SIGTERM, None)
        assert {each.result()[0] for each in attack} == {503}
    assert sorted(waits)[len(waits) // 4] < 0.1  # a quarter of them, for machines that do other work meanwhile


@pytest.mark.parametrize(("deadline", "status"), [(30, 413), (0.1, 429)])
def test_work_is_abandoned_when_its_time_is_over(stuck, deadline, status):
    with running(make_catalogue(), split_seconds=0.5, deadline=deadline) as server:
        assert server.post("/v1/words", {"text": "slow"})[0] == status
        until(lambda: server.service.splitter._ordinary._process is None and is_quiet(server))


def test_clients_that_vanish_leave_nothing_behind(stuck, caplog):
    caplog.set_level(logging.WARNING)
    with running(make_catalogue()) as server:
        whole = raw_request(b'{"text": "never split"}')
        for message in [whole[:20], whole[:-5], whole, raw_request(json.dumps(FINE).encode())] * 12:
            with connect(server) as connection:
                connection.sendall(message)
        until(lambda: is_quiet(server))
        assert server.post("/v1/words", FINE)[0] == 200
    assert {record.message for record in caplog.records} <= {"preparation failed"}  # of the tokenizer, which is stuck


def test_two_hundred_slow_clients_are_let_go_and_others_are_served():
    with running(make_catalogue(), body_seconds=1.0) as server, ExitStack() as stack:
        sockets = [stack.enter_context(connect(server)) for _ in range(200)]
        silent, heads, bodies = sockets[:20], sockets[20:100], sockets[100:]
        for connection in heads:
            connection.sendall(b"POST /v1/words HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for connection in bodies:
            connection.sendall(raw_request(b'{"sentences"', length=500))
        assert server.post("/v1/words", FINE)[0] == 200
        assert {connection.recv(100)[:12] for connection in bodies} == {b"HTTP/1.1 408"}
        assert {connection.recv(100) for connection in [*silent, *heads]} == {b""}
        until(lambda: len(server.server.server_state.connections) == 0)


def test_a_second_request_on_a_connection_has_the_same_time_for_its_headers():
    with running(make_catalogue(), body_seconds=1.0) as server, connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while not received.endswith(b"}"):
            received += connection.recv(10_000)
        assert received.startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /hea")
        assert connection.recv(100) == b""


class PoisonedEncoder(BlockedEncoder):
    """Gives NaN for one word and raises at another, in whatever batch they come."""

    def embed(self, sentences):
        sentences = list(sentences)
        if any("refused" in words for words in sentences):
            raise InputError("the word is refused")
        vectors = list(super().embed(sentences))
        return [
            np.full_like(each, np.nan) if "nan" in words else each
            for words, each in zip(sentences, vectors, strict=True)
        ]


def test_a_poisoned_request_does_not_harm_its_company(pool):
    encoder = PoisonedEncoder()
    with running(Catalogue([ServedModel("poisoned", encoder)])) as server:
        until(lambda: server.service.ready)
        first = pool.submit(server.post, "/v1/words", FINE)
        encoder.begun.wait(60)
        words = ["one", "nan", "two", "refused", "three"]
        asked = [{"sentences": [["a", word], [word]]} for word in words]
        tickets = [pool.submit(server.post, "/v1/words", each) for each in asked]
        until(lambda: server.service.batcher.waiting == len(words))
        encoder.go.set()
        answers = dict(zip(words, (ticket.result() for ticket in tickets), strict=True))
        assert first.result()[0] == 200
    for word in ("nan", "refused"):
        status, answer = answers[word]
        assert (status, answer["error"]["type"]) == (422, "invalid")
    for word in ("one", "two", "three"):
        status, answer = answers[word]
        assert status == 200
        expected = make_encoder().embed([["a", word], [word]])
        for found, vectors in zip(answer["sentences"], expected, strict=True):
            np.testing.assert_allclose(found["vectors"], vectors, atol=1e-6)


def test_a_flood_is_refused_with_the_time_to_come_back_and_what_was_accepted_is_answered(pool):
    encoder = BlockedEncoder()
    with running(encoder.catalogue(), queue_words=30, batch_words=10) as server:
        body, headers = json.dumps(FINE).encode(), {"Content-Type": "application/json"}
        flood = [pool.submit(server.request, "POST", "/v1/words", body, headers) for _ in range(100)]
        encoder.begun.wait(60)
        until(lambda: sum(each.done() for each in flood) > 60)
        encoder.go.set()
        answers = [each.result()[0] for each in flood]
        statuses = [answer.status for answer in answers]
        assert {*statuses} == {200, 429}
        assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers if answer.status == 429)
        assert len(encoder.seen) == statuses.count(200)
        assert server.get("/health")[0].status == 200
        until(lambda: is_quiet(server))


def test_nothing_that_was_accepted_is_lost_when_the_server_stops_under_load(pool):
    with running(make_catalogue()) as server:

        def ask_until_refused(_):
            answered = 0
            try:
                while server.post("/v1/words", FINE)[0] == 200:
                    answered += 1
            except OSError:  # it no longer listens
                pass
            return answered

        load = [pool.submit(ask_until_refused, number) for number in range(8)]
        until(lambda: server.service.metrics.text().count('route="/v1/words",status="200"'))
        server.server.handle_exit(signal.SIGTERM, None)
        answered = sum(each.result() for each in load)
        until(lambda: not server.service.in_flight)
    assert f'polyseme_requests_total{{route="/v1/words",status="200"}} {answered}\n' in server.service.metrics.text()


def test_a_drain_that_takes_too_long_ends_with_a_refusal_and_no_fault(pool):
    encoder = BlockedEncoder()
    with running(encoder.catalogue(), drain_seconds=0.5) as server:
        asked = pool.submit(server.post, "/v1/words", FINE)
        encoder.begun.wait(60)
        server.server.handle_exit(signal.SIGTERM, None)
        status, answer = asked.result()
        encoder.go.set()
    assert (status, answer["error"]["type"]) == (503, "draining")


def test_a_second_signal_ends_the_process_at_once(monkeypatch):
    sent = []
    with running(make_catalogue()) as server:
        until(lambda: server.server.started)
        monkeypatch.setattr(signal, "signal", lambda *pair: sent.append(pair))
        monkeypatch.setattr(signal, "raise_signal", sent.append)
        server.server.handle_exit(signal.SIGINT, None)
        assert sent == []
        server.server.handle_exit(signal.SIGTERM, None)
        assert sent == [(signal.SIGTERM, signal.SIG_DFL), signal.SIGTERM]


def test_many_requests_leave_memory_as_it_was():
    def objects():
        gc.collect()
        return len(gc.get_objects())

    with running(make_catalogue()) as server:
        until(lambda: server.service.ready)

        def ask(count):
            for number in range(count):
                body = (FINE, {"text": f"word{number} bank"}, {"text": 7}, {"sentences": [["x" * 2000]]})[number % 4]
                assert server.post("/v1/words", body)[0] in (200, 413, 422)

        ask(40)
        before = objects()
        ask(160)
        until(lambda: is_quiet(server) and not server.server.server_state.connections)
        assert objects() - before < 80


LIMITS = {"words": 8, "sentences": 3, "sentence_words": 4, "word_characters": 5, "body_bytes": 500}
JUST = [
    ({"sentences": [["a"] * 4] * 2}, {"sentences": [["a"] * 4, ["a"] * 4, ["a"]]}),
    ({"text": "Go on up. Go on up."}, {"text": "Go on up. Go on up. Go."}),
    ({"sentences": [["a"]] * 3}, {"sentences": [["a"]] * 4}),
    ({"text": "Go. Go. Go."}, {"text": "Go. Go. Go. Go."}),
    ({"sentences": [["a"] * 4]}, {"sentences": [["a"] * 5]}),
    ({"text": "Go on up."}, {"text": "Go on up it."}),
    ({"sentences": [["abcde"]]}, {"sentences": [["abcdef"]]}),
    ({"text": "abcde"}, {"text": "abcdef"}),
    (json.dumps(FINE).encode().ljust(500), json.dumps(FINE).encode().ljust(501)),
]


def test_each_limit_holds_to_the_unit():
    with running(make_catalogue(), **LIMITS) as server:
        for below, above in JUST:
            assert server.post("/v1/words", below)[0] == 200, below
            assert server.post("/v1/words", above)[0] == 413, above


def test_connections_are_limited_too():
    with running(make_catalogue(), connections=5) as server, ExitStack() as stack:
        idle = [stack.enter_context(connect(server)) for _ in range(3)]
        until(lambda: len(server.server.server_state.connections) == 3)
        assert server.get("/health")[0].status == 200
        idle.append(stack.enter_context(connect(server)))
        until(lambda: len(server.server.server_state.connections) == 4)
        assert server.get("/health")[0].status == 503


def test_more_values_than_a_request_may_have_are_refused_before_they_are_described():
    bodies = [
        b'{"sentences":[[' + b"1," * 200_000 + b"1]]}",
        b'{"sentences":[' + b"[]," * 200_000 + b"[]]}",
        b'{"text":"a","layers":[' + b"1," * 200_000 + b"1]}",
        json.dumps({f"field{number}": 0 for number in range(40_000)}).encode(),
        b"[" + b"{}," * 200_000 + b"{}]",
    ]
    with running(make_catalogue()) as server:
        for body in bodies:
            status, answer = server.post("/v1/words", body)
            assert (status, answer["error"]["type"]) == (413, "too_large")
