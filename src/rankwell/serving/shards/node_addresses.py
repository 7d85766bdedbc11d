"""The addresses of nodes, as `rankwell serve --nodes` takes them."""

from __future__ import annotations

from ipaddress import ip_address

from rankwell.errors import ParameterError

Address = tuple[str, int]


def parse_shards(text: str) -> list[list[Address]]:
    """Shards separated by commas, the replicas of one by ``|``: ``a:7001|b:7001,c:7002``."""
    return [[parse_address(replica, "nodes") for replica in shard.split("|")] for shard in text.split(",")]


def parse_spares(text: str) -> list[Address]:
    """Addresses separated by commas."""
    return [parse_address(one, "spare_nodes") for one in text.split(",")] if text else []


def parse_address(text: str, parameter: str) -> Address:
    """``host:port``, or ``[address]:port`` for IPv6."""
    host, colon, port = text.strip().rpartition(":")
    is_bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if is_bracketed else host
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and not is_bracketed):
        raise ParameterError(
            f"must be host:port, several separated by commas, replicas of a shard by |, got {text!r}.",
            parameter=parameter,
        )
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
