"""``polyseme serve`` as people run it."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

import polyseme


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--limit", "word=3"], "Did you mean 'words'"),
        (["--model", "nowhere/at/all"], "does not exist"),
        (["--key-file", "nowhere"], "nowhere: No such file"),
        (["--cors", "example.org"], "https://example.org"),
        (["--tagger", "nowhere"], "nowhere"),
        (["--host", "256.1.1.1"], "cannot listen at 256.1.1.1"),
    ],
)
def test_what_cannot_be_served_is_one_line(call, fixtures, options, message):
    model = [] if "--model" in options else ["--model", fixtures / "tiny"]
    outcome = call("serve", *model, *options)
    assert outcome.status == 2
    assert message in outcome.err
    assert outcome.err.splitlines()[-1].startswith("error: ")


def test_a_port_that_is_taken_and_a_key_that_is_short_are_one_line(call, fixtures, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        outcome = call("serve", "--model", fixtures / "tiny", "--port", taken.getsockname()[1])
    assert (outcome.status, "choose another --port" in outcome.err) == (2, True)
    (tmp_path / "key").write_bytes(b"\xff\xfe")
    assert "is not a text file" in call("serve", "--key-file", tmp_path / "key").err
    monkeypatch.setenv("POLYSEME_KEY", "short")
    assert "8 characters" in call("serve", "--model", fixtures / "tiny").err


def test_it_says_where_it_is_answers_and_stops_when_told(fixtures):
    command = [sys.executable, "-m", "polyseme", "serve", "--model", str(fixtures / "tiny"), "--port", "0", "--log"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = process.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}/ready") as ready:
            assert ready.status == 200
        client = polyseme.Client(url)
        (vectors,) = client.embed([["a", "bank"]])
        assert vectors.shape == (3, 2, 32)
        client.close()
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert '"route": "/v1/words"' in told
    assert "bank" not in told
