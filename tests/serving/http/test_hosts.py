"""Who may reach the server: host names, origins, HEAD requests and keys."""

import hmac
import json

import pytest
from server_fixture import make_catalogue, running

from polyseme.errors import ConfigError
from polyseme.serving.http.hosts import check_host, check_origin
from polyseme.serving.settings import ServeSettings

ROUTES = ("/", "/page/", "/style.css", "/openapi.json", "/v1/models", "/health", "/ready", "/metrics", "/nothing")


@pytest.fixture(scope="module")
def server():
    with running(make_catalogue(), ServeSettings(hosts=("example.org",))) as it:
        yield it


def scope(server="127.0.0.1", **headers):
    return {"server": (server, 8000), "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}


@pytest.mark.parametrize(
    ("host", "address", "allowed", "fine"),
    [
        ("localhost", "127.0.0.1", (), True),
        ("LocalHost:8000", "127.0.0.1", (), True),
        ("127.0.0.1:8000", "127.0.0.1", (), True),
        ("127.1.2.3", "127.0.0.1", (), True),
        ("[::1]:8000", "::1", (), True),
        ("192.168.1.7:8000", "192.168.1.7", (), True),
        ("192.168.1.7:8000", "::ffff:192.168.1.7", (), True),
        ("192.168.1.8:8000", "192.168.1.7", (), False),
        ("evil.example", "127.0.0.1", (), False),
        ("127.0.0.1.evil.example", "127.0.0.1", (), False),
        ("localhost.evil.example", "127.0.0.1", (), False),
        ("notlocalhost", "127.0.0.1", (), False),
        ("", "127.0.0.1", (), False),
        ("[::1]", "127.0.0.1", (), True),
        ("[::1", "127.0.0.1", (), False),
        ("[::1]evil.com", "127.0.0.1", (), False),
        ("[::1]:evil.com", "127.0.0.1", (), False),
        ("[127.0.0.1]", "127.0.0.1", (), False),
        ("[evil]", "127.0.0.1", (), False),
        ("[localhost]evil", "127.0.0.1", (), False),
        ("[localhost]", "127.0.0.1", (), False),
        ("localhost:", "127.0.0.1", (), False),
        ("localhost:evil.com", "127.0.0.1", (), False),
        ("localhost:80@evil.com", "127.0.0.1", (), False),
        ("localhost.:80", "127.0.0.1", (), True),
        ("localhost..", "127.0.0.1", (), False),
        ("example.org", "127.0.0.1", (), False),
        ("example.org:443", "127.0.0.1", ("example.org",), True),
        ("Example.ORG.", "127.0.0.1", ("example.org",), True),
        ("sub.example.org", "127.0.0.1", ("example.org",), False),
        ("anything", "127.0.0.1", ("*",), True),
    ],
)
def test_a_host_is_loopback_or_the_address_or_allowed(host, address, allowed, fine):
    refusal = check_host(scope(address, host=host), allowed)
    assert (refusal is None) == fine
    assert fine or refusal.status == 403


def test_a_request_without_a_host_is_no_browsers():
    assert check_host(scope(), ()) is None


@pytest.mark.parametrize(
    ("origin", "host", "origins", "hosts", "fine"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000", (), (), True),
        ("http://localhost:8000", "localhost:8000", (), (), True),
        ("http://localhost:3000", "localhost:8000", (), (), False),
        ("https://example.org", "example.org", (), (), True),
        ("https://example.org", "127.0.0.1:8000", (), ("example.org",), True),
        ("https://example.com", "127.0.0.1:8000", (), ("example.org",), False),
        ("https://example.com", "127.0.0.1:8000", ("https://example.com",), (), True),
        ("https://example.com", "127.0.0.1:8000", ("*",), (), True),
        ("https://example.org:x.evil.com", "127.0.0.1:8000", (), ("example.org",), False),
        ("chrome-extension://example.org", "127.0.0.1:8000", (), ("example.org",), False),
        ("chrome-extension://127.0.0.1", "127.0.0.1", (), (), False),
        ("http://[::1]:8000", "[::1]:8000", (), (), True),
        ("null", "127.0.0.1:8000", (), ("*",), False),
        ("", "127.0.0.1:8000", (), (), False),
    ],
)
def test_an_origin_is_the_servers_own_or_allowed(origin, host, origins, hosts, fine):
    assert (check_origin(scope(host=host, origin=origin), origins, hosts) is None) == fine


def test_other_hosts_and_sites_are_refused_everywhere_in_one_sentence(server):
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
        for path in ROUTES:
            response, body = server.get(path, headers)
            error = json.loads(body)["error"]
            assert (response.status, error["type"]) == (403, "forbidden")
            assert "start it with --" in error["message"]
        assert server.post("/v1/words", {"text": "a"}, headers)[0] == 403
        assert server.request("OPTIONS", "/v1/words", headers=headers)[0].status == 403
    for headers in ({"Host": "example.org"}, {"Host": f"localhost:{server.port}"}, {"Origin": server.url}):
        assert server.post("/v1/words", {"text": "a"}, headers)[0] == 200


def test_other_ports_and_schemes_of_the_address_listened_at_are_other_sites(server):
    for origin in ("http://127.0.0.1:3", "https://127.0.0.1", "chrome-extension://127.0.0.1", server.url + "x.evil"):
        assert server.get("/health", {"Origin": origin})[0].status == 403


def test_head_is_answered_like_get_without_the_body(server):
    for path in ROUTES:
        asked, told = server.get(path), server.request("HEAD", path)
        assert told[0].status == asked[0].status
        assert told[1] == b""
        if path not in ("/metrics", "/ready"):  # these change
            assert told[0].headers["Content-Length"] == asked[0].headers["Content-Length"]
    assert server.request("HEAD", "/v1/words")[0].status == 405


def test_a_key_is_compared_in_constant_time(monkeypatch):
    compared = []

    def compare(given, expected):
        compared.append((given, expected))
        return hmac_compare(given, expected)

    hmac_compare = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", compare)
    with running(make_catalogue(), ServeSettings(key="open sesame")) as guarded:
        for key, status in (("open sesame", 200), ("open sesam", 401), ("é", 401), ("", 401)):
            headers = {"Authorization": f"Bearer {key}".encode("latin-1")}
            assert guarded.get("/v1/models", headers)[0].status == status
    assert [given for given, _ in compared] == [b"open sesame", b"open sesam", "é".encode(), b""]


def test_hosts_are_written_without_scheme_and_port():
    for host in ("http://example.org", "example.org:80", "exa mple", "", "UPPER"):
        with pytest.raises(ConfigError, match=r"write a host like example\.org"):
            ServeSettings(hosts=(host,))
    assert ServeSettings(hosts=("*", "::1", "10.0.0.7", "my-server.local"))
