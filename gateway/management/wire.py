"""Format of the admin socket: a line of JSON each way, then as many bytes as the line says.

    → {"request": "import_definitions", "arguments": {"dry_run": true}, "body_bytes": 52428800}
      … the bytes …
    ← {"result": {…}}                     or {"error": "…", "code": "not_found"}

One connection may ask many times, one after the other.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from gateway.management.errors import WrongRequest

SOCKET_NAME: Final = "admin.sock"
"""In the data directory."""
LINE_BYTES_MAX: Final = 1024 * 1024
"""Longest line of a request; what is larger is a body."""
BODY_BYTES_MAX: Final = 128 * 1024 * 1024
PATH_BYTES_MAX: Final = 100
"""Longest path that a Unix socket's address surely holds (Linux: 107)."""


@contextmanager
def address_of(directory: Path) -> Iterator[str]:
    """Yield the address of the socket in a directory, also where the path is too long for one."""
    path = str(directory / SOCKET_NAME)
    if len(os.fsencode(path)) <= PATH_BYTES_MAX:
        yield path
        return
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET_NAME}"
    finally:
        os.close(descriptor)


class Head(NamedTuple):
    """The line of a request, before its body."""

    name: str
    arguments: Mapping[str, Any]
    body_bytes: int


def read_head(line: bytes) -> Head:
    """Read the line of a request. Raises WrongRequest."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        raise WrongRequest("a request is one line of JSON") from None
    if not isinstance(content, dict) or content.keys() - {"request", "arguments", "body_bytes"}:
        raise WrongRequest('a request is {"request": …, "arguments": …, "body_bytes": …}')
    name, arguments = content.get("request"), content.get("arguments", {})
    body_bytes = content.get("body_bytes", 0)
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise WrongRequest("request is a text and arguments are an object")
    if type(body_bytes) is not int or not 0 <= body_bytes <= BODY_BYTES_MAX:
        raise WrongRequest(f"body_bytes is a whole number from 0 to {BODY_BYTES_MAX}")
    return Head(name, arguments, body_bytes)


def pack_request(name: str, arguments: Mapping[str, Any], body: bytes = b"") -> bytes:
    """Return the line of a request, and its body behind it."""
    fields = {"request": name, "arguments": arguments, "body_bytes": len(body)}
    return json.dumps(fields).encode() + b"\n" + body


def pack_result(result: object) -> bytes:
    """Return the line of an answer. JSON's escapes keep it one line of ASCII."""
    return json.dumps({"result": result}).encode() + b"\n"


def pack_error(code: str, message: str) -> bytes:
    """Return the line of a refusal."""
    return json.dumps({"error": message, "code": code}).encode() + b"\n"
