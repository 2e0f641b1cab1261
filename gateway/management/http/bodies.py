"""Bodies of requests: read after the login, up to a size and within a time."""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final
from weakref import WeakValueDictionary

from starlette.types import Message, Receive

from gateway.management.http.answers import ApiRefusal, bad_request
from gateway.management.json_reader import read_json
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


_HALVES: Final = re.compile(rb"\\u[dD][89a-fA-F]")


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
            ApiRefusal: They take too long.
        """
        lock = self._locks.setdefault(user, asyncio.Lock())
        try:
            async with asyncio.timeout(WAIT_S):
                await lock.acquire()
        except TimeoutError:
            reason = "other large bodies of this user are still on their way"
            raise ApiRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "bad_request", reason) from None
        try:
            yield
        finally:
            lock.release()


def is_small(headers: Mapping[str, str]) -> bool:
    """Return whether a body is announced to be as small as that of a request on one object."""
    announced = headers.get("content-length", "")
    return announced.isdecimal() and len(announced) < _DIGITS and int(announced) <= SMALL_BYTES_MAX


async def read_body(receive: Receive, headers: Mapping[str, str], bytes_max: int) -> bytes:
    """Read a body to its end; more than `bytes_max` is not read.

    Raises:
        ApiRefusal: It is too large, by what is announced or what came, or too slow.
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
            raise ApiRefusal(HTTPStatus.REQUEST_TIMEOUT, "bad_request", reason) from None
        if message["type"] != "http.request":
            raise BodyCutShort
        body += message.get("body", b"")
        if len(body) > bytes_max:
            raise _too_large(bytes_max)
        if not message.get("more_body", False):
            return bytes(body)


def _too_large(bytes_max: int) -> ApiRefusal:
    reason = f"a body has {bytes_max} bytes at most here"
    return ApiRefusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "bad_request", reason)


def not_json() -> ApiRefusal:
    """Return the refusal of a body that is no JSON object."""
    return bad_request("not_json")


def json_object(body: bytes) -> Mapping[str, Any]:
    """Read a body that is a JSON object; nothing is an empty one.

    Half a surrogate pair is no text, and what is beyond the largest number is none.

    Raises:
        ApiRefusal: It is none, or says one name of an object twice.
    """
    if not body:
        return {}
    try:
        text = body.decode(json.detect_encoding(body), "surrogatepass")
        is_quick = len(body) <= QUICK_BYTES_MAX
        content = _DECODER.decode(text) if is_quick else read_json(text, _DECODER)
        if _HALVES.search(body) is not None:
            for part in _WHOLE.iterencode(content):
                part.encode()
    except (ValueError, RecursionError):
        raise not_json() from None
    if not isinstance(content, dict):
        raise not_json()
    return content


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a name is said twice")
    return result


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _no_number(text: str) -> Any:  # noqa: ANN401
    raise ValueError(f"{text} is no number")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_each_once, parse_constant=_no_number, parse_float=_number
)
_WHOLE: Final = json.JSONEncoder(ensure_ascii=False)
