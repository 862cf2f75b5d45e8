"""The server as a whole: busy, left, told to stop; keys, headers, counts and logs."""

import json
import logging
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from server_fixture import BlockedEncoder, make_catalogue, raw_request, running, until

from polyseme.serving.server import JsonLines
from polyseme.serving.settings import ServeSettings

KEY = "a key of some length"


@pytest.fixture
def held():
    model = BlockedEncoder()
    yield model
    model.go.set()


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as it:
        yield it


def ask(server, *words):
    return server.post("/v1/words", {"sentences": [list(words)]})


def test_who_comes_when_the_queue_is_full_is_told_when_to_come_back(held, pool):
    with running(held.catalogue(), queue_words=10, batch_words=4) as server:
        first = pool.submit(ask, server, "a", "b", "c")
        held.begun.wait(60)
        second = pool.submit(ask, server, "d", "e")
        until(lambda: server.service.admission.words >= 9)
        response, body = server.request(
            "POST", "/v1/words", b'{"text": "one too many"}', {"Content-Type": "application/json"}
        )
        assert (response.status, json.loads(body)["error"]["type"]) == (429, "overloaded")
        assert int(response.headers["Retry-After"]) >= 1
        held.go.set()
        assert (first.result()[0], second.result()[0]) == (200, 200)
        assert ask(server, "a")[0] == 200
        until(lambda: server.service.admission.words == 0)


def test_a_client_that_leaves_costs_nothing(held, pool):
    with running(held.catalogue(), batch_words=4) as server:
        first = pool.submit(ask, server, "first")
        held.begun.wait(60)
        body = b'{"sentences": [["leaving"]]}'
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(raw_request(body))
            until(lambda: server.service.admission.words >= 6)
        until(lambda: server.service.admission.words <= 3)
        held.go.set()
        assert first.result()[0] == 200
        assert ask(server, "last")[0] == 200
    assert held.seen == [["first"], ["last"]]


def test_an_answer_that_takes_too_long_is_given_up(held):
    with running(held.catalogue(), deadline=0.05) as server:
        status, answer = ask(server, "slow")
        assert (status, answer["error"]["type"]) == (429, "overloaded")
        held.go.set()


def test_a_server_told_to_stop_answers_what_it_accepted_and_nothing_else(held, pool):
    with running(held.catalogue(), batch_words=4) as server:
        accepted = [pool.submit(ask, server, "a", str(number)) for number in range(4)]
        until(lambda: server.service.admission.words >= 16)
        server.server.handle_exit(signal.SIGTERM, None)
        until(lambda: server.service.draining)
        assert server.get("/ready")[0].status == 503
        assert server.get("/health")[0].status == 200
        response, _ = server.request("POST", "/v1/words", b"{}", {"Content-Type": "application/json"})
        assert (response.status, response.headers["Connection"]) == (503, "close")
        held.go.set()
        assert [each.result()[0] for each in accepted] == [200] * 4


def test_a_key_is_asked_for_where_there_is_one():
    with running(make_catalogue(), ServeSettings(key=KEY)) as server:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}):
            status, answer = server.post("/v1/words", {"text": "a"}, headers)
            assert (status, answer["error"]["type"]) == (401, "unauthorized")
        assert server.get("/metrics")[0].status == 401
        assert server.post("/v1/words", {"text": "a"}, {"Authorization": f"Bearer {KEY}"})[0] == 200
        until(lambda: server.service.ready)
        assert [server.get(path)[0].status for path in ("/health", "/ready", "/")] == [200] * 3


def test_only_listed_sites_may_ask_from_a_browser():
    with running(make_catalogue(), ServeSettings(key=KEY, origins=("https://example.org",))) as server:
        asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
        for origin, allowed in (("https://example.org", "https://example.org"), ("https://example.com", None)):
            response, _ = server.request("OPTIONS", "/v1/words", headers={**asked, "Origin": origin})
            assert response.headers["Access-Control-Allow-Origin"] == allowed
            for key, status in ((KEY, 200), ("wrong", 401)):
                response, _ = server.get("/v1/models", {"Origin": origin, "Authorization": f"Bearer {key}"})
                assert response.status == (status if allowed else 403)
                assert response.headers["Access-Control-Allow-Origin"] == allowed


def test_counts_are_told_and_logs_hold_no_text(caplog):
    caplog.set_level(logging.INFO, "polyseme.serving")
    with running(make_catalogue()) as server:
        assert server.post("/v1/words", {"sentences": [["secret", "words"]]})[0] == 200
        assert server.post("/v1/words", {"sentences": [["secret", 7]]})[0] == 422
        assert server.post("/v1/compare", {"sentences": ["secret", "b"], "word": "secret"})[0] == 422
        assert server.get("/secret?secret=1")[0].status == 404
        until(lambda: len(caplog.records) >= 4)
        response, body = server.get("/metrics")
    text = body.decode()
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'polyseme_requests_total{route="/v1/words",status="200"} 1' in text
    assert 'polyseme_requests_total{route="/v1/words",status="422"} 1' in text
    assert 'polyseme_words_total{model="small"}' in text
    assert "polyseme_inside_words 0" in text
    assert all(len(line.rsplit(" ", 1)) == 2 for line in text.splitlines())
    lines = [JsonLines().format(record) for record in caplog.records if record.name == "polyseme.serving"]
    about = json.loads(lines[0])
    assert (about["route"], about["status"], about["words"]) == ("/v1/words", 200, 2)
    assert len(lines) == 5
    assert "secret" not in "".join(lines)


def test_an_error_of_our_own_is_told_without_the_text(caplog, monkeypatch):
    catalogue = make_catalogue()
    with running(catalogue) as server:

        def fail(_):
            raise RuntimeError("secret")

        monkeypatch.setattr("polyseme.serving.routes.vectors.select_layers", lambda *_: fail(0))
        caplog.set_level(logging.ERROR, "polyseme.serving")
        status, answer = server.post("/v1/words", {"text": "secret"})
        assert (status, answer["error"]["type"]) == (500, "fault")
        monkeypatch.undo()
        assert server.post("/v1/words", {"text": "secret"})[0] == 200
    (line,) = [JsonLines().format(record) for record in caplog.records if record.name == "polyseme.serving"]
    assert json.loads(line)["kind"] == "RuntimeError"
    assert "secret" not in line


def test_a_server_is_ready_when_its_tokenizer_process_answers(monkeypatch):
    attempts = []

    async def start(_):
        attempts.append(len(attempts))
        if len(attempts) < 3:
            raise OSError("no process can be started now")

    monkeypatch.setattr("polyseme.serving.engine.splitter.Splitter.start", start)
    monkeypatch.setattr("polyseme.serving.engine.service._RETRY_SECONDS", 0.001)
    with running(make_catalogue()) as server:
        until(lambda: server.service.ready)
    assert attempts == [0, 1, 2]


def test_browsers_are_told_to_load_nothing_from_elsewhere():
    with running(make_catalogue()) as server:
        for path in ("/", "/page/", "/style.css", "/v1/models"):
            response, _ = server.get(path)
            assert response.status == 200
            assert "default-src 'self'" in response.headers["Content-Security-Policy"]
            assert response.headers["X-Content-Type-Options"] == "nosniff"


def test_a_slow_reader_does_not_keep_its_place():
    with running(make_catalogue(), send_seconds=0.05, words=30_000, sentence_words=30_000) as server:
        body = json.dumps({"sentences": [["bank"] * 30_000]}).encode()
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", server.port))
            connection.sendall(raw_request(body))
            assert connection.recv(10) == b"HTTP/1.1 2"
            until(lambda: not server.service.admission.words)
        assert ask(server, "a")[0] == 200
        assert b'polyseme_dropped_total{reason="slow"} 1' in server.get("/metrics")[1]


def test_nothing_is_left_running():
    with running(make_catalogue()) as server:
        assert ask(server, "a")[0] == 200
        assert server.service.batcher.alive
    assert not server.service.batcher.alive
    assert "polyseme-batches" not in {thread.name for thread in threading.enumerate() if thread.is_alive()}
