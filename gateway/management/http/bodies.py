"""Bodies of requests: read after the login, up to a size and within a time."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakValueDictionary

from starlette.types import Message, Receive

from gateway.management.http.answers import Refused, bad_request
from gateway.management.http.json_text import NotJson, unpack_json
from gateway.server.connections.unfinished import CLIENT_S

QUICK_BYTES_MAX: Final = 16 * 1024
"""Largest body that is read and taken in a turn of the loop; it takes a millisecond at most."""
SMALL_BYTES_MAX: Final = 256 * 1024
"""Largest body of a request on one object."""
MESSAGE_BYTES_MAX: Final = 2 * 1024 * 1024
"""Largest body of a message to publish, in base64 or with every character escaped."""
LARGE_BYTES_MAX: Final = 10 * 1024 * 1024
"""Largest body of definitions; `hutch import` takes larger ones."""
_DIGITS: Final = 20
WAIT_S: Final = 30.0
"""Longest time that a large body waits for others of the same user."""
SLOW_S: Final = 10.0
BYTES_A_SECOND: Final = 64 * 1024
"""A body may take SLOW_S, a second more for so many bytes that came, and CLIENT_S at most."""


class BodyCutShort(Exception):
    """The client left."""


class LargeBodies:
    """Lets each user have one large body after the other in memory; users do not wait for others.

    A lock is there as long as a body holds it or waits for it.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, user: str) -> AsyncIterator[None]:
        """Wait until the user's large bodies from before are read.

        Raises:
            Refused: They take too long.
        """
        lock = self._locks.setdefault(user, asyncio.Lock())
        try:
            async with asyncio.timeout(WAIT_S):
                await lock.acquire()
        except TimeoutError:
            reason = "other large bodies of this user are still on their way"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "bad_request", reason) from None
        try:
            yield
        finally:
            lock.release()


def is_small(headers: Mapping[str, str]) -> bool:
    """Return whether a body is announced to be as small as that of a request on one object."""
    announced = headers.get("content-length", "")
    return announced.isdecimal() and len(announced) < _DIGITS and int(announced) <= SMALL_BYTES_MAX


async def read_body(receive: Receive, headers: Mapping[str, str], bytes_max: int) -> bytes:
    """Read a body to its end.

    Args:
        receive: Gives its parts.
        headers: Those of the request.
        bytes_max: More is not read.

    Raises:
        Refused: It is too large, by what is announced or what came, or too slow.
        BodyCutShort: The client left.
    """
    announced = headers.get("content-length", "0")
    if not announced.isdecimal() or int(announced[:_DIGITS]) > bytes_max:
        raise _too_large(bytes_max)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    body = bytearray()
    while True:
        deadline_s = began_s + min(SLOW_S + len(body) / BYTES_A_SECOND, CLIENT_S)
        try:
            async with asyncio.timeout_at(deadline_s):
                message: Message = await receive()
        except TimeoutError:
            reason = "the body did not come in time"
            raise Refused(HTTPStatus.REQUEST_TIMEOUT, "bad_request", reason) from None
        if message["type"] != "http.request":
            raise BodyCutShort
        body += message.get("body", b"")
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(bytes_max: int) -> Refused:
    reason = f"a body has {bytes_max} bytes at most here"
    return Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "bad_request", reason)


def not_json() -> Refused:
    """Return the refusal of a body that is no JSON object."""
    return bad_request("not_json")


def json_object(body: bytes) -> Mapping[str, Any]:
    """Read a body that is a JSON object; nothing is an empty one. Raises Refused."""
    if not body:
        return {}
    try:
        content = unpack_json(body)
    except NotJson:
        raise not_json() from None
    if not isinstance(content, dict):
        raise not_json()
    return content
