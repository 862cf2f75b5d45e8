"""Host and Origin checks: the server answers for its own address, and not to the pages of other sites.

Without the check of the host, a page of another site could reach a server on the reader's machine by DNS rebinding: it
lets its own name point to 127.0.0.1, and the browser believes that both are one site.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Address, IPv6Address, ip_address

from starlette.types import Scope

from polyseme.serving.http.errors import HttpError

ANY = "*"
_HOST = re.compile(r"(?:\[(?P<ipv6>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?)(?::[0-9]{1,5})?")


def check_host(scope: Scope, allowed: Collection[str]) -> HttpError | None:
    """Refuse a request whose Host is neither loopback, nor the address it came to, nor allowed.

    No Host at all is fine: browsers always send one.
    """
    if ANY in allowed or all(_is_ours(_host_name(host), scope, allowed) for host in _values(scope, b"host")):
        return None
    message = (
        "this server answers only for its own address; to reach it by another name, start it with --allow-host NAME"
    )
    return HttpError(403, "forbidden", message)


def check_origin(scope: Scope, origins: Collection[str], names: Collection[str]) -> HttpError | None:
    """Refuse a request that a page of another site sends, unless that site is allowed.

    The server's own pages have the host and port of the request. The names are those by which a proxy may publish the
    server, at any port; the address that it listens at is none of them, since other ports there are other sites.
    """
    own = _values(scope, b"host")
    for origin in _values(scope, b"origin"):
        scheme, _, address = origin.partition("://")
        name = _host_name(address) if scheme in ("http", "https") else None
        is_own = name is not None and (address in own or name in names)
        if not (is_own or origin in origins or ANY in origins):
            message = "pages of other sites may not use this server; to allow a site, start it with --cors ORIGIN"
            return HttpError(403, "forbidden", message)
    return None


def _is_ours(name: str | None, scope: Scope, allowed: Collection[str]) -> bool:
    if name is None:
        return False
    if name in allowed or name == "localhost":
        return True
    address, server = _address(name), scope.get("server")
    return address is not None and (address.is_loopback or (server is not None and address == _address(server[0])))


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1").strip().lower() for name, value in scope["headers"] if name == header]


def _host_name(host: str) -> str | None:
    """The name in ``name``, ``name:port``, ``[address]`` or ``[address]:port``; None for anything else."""
    match = _HOST.fullmatch(host)
    if match is None or (match["ipv6"] and not isinstance(_parse_address(match["ipv6"]), IPv6Address)):
        return None
    return match["ipv6"] or match["name"]


def _address(name: str) -> IPv4Address | IPv6Address | None:
    address = _parse_address(name)
    return getattr(address, "ipv4_mapped", None) or address


def _parse_address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
