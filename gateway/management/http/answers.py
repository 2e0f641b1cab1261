"""Answers of the API: a value, a long list in slices, nothing, or why not."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.broker.yielding import Slice

T = TypeVar("T")

SLICE: Final = 32
"""Objects of a list that are made in one turn of the event loop: a millisecond or two."""
SLICE_CHARACTERS: Final = 64 * 1024
"""After so much of a list the turn is over too: a client may make single objects large."""
PAIRS: Final = 1_000
"""Entries of an object with many names that make a slice."""
STALL_S: Final = 30.0
"""Longest time that a client may leave an answer unread."""

_HEADERS: Final = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
CHALLENGE: Final = {"www-authenticate": 'Basic realm="RabbitMQ Management"'}

NOT_FOUND: Final = "Not Found"
_ESCAPE: Final = re.compile(
    r"\\(?:ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(ud[89a-f][0-9a-f]{2})|.)", re.DOTALL
)
_MARKUP: Final = (("<", r"\u003c"), (">", r"\u003e"), ("&", r"\u0026"))
# Made once: making one takes longer than most of what it encodes.
_encode: Final = json.JSONEncoder(separators=(",", ":")).encode
_REPLACEMENT: Final = r"\ufffd"


def pack_json(value: object) -> str:
    """Return a value as JSON in ASCII that is safe to show, whatever is in a name.

    Names are kept as the bytes that clients sent. What is no text in them becomes U+FFFD, since
    half a surrogate pair is an error to strict readers; control characters and all beyond ASCII are
    escaped, and so are the characters that mean something to HTML.
    """
    text = _encode(value)
    if r"\ud" in text:
        text = _ESCAPE.sub(_whole, text)
    # Outside of texts JSON has none of these.
    for character, escaped in _MARKUP:
        text = text.replace(character, escaped)
    return text


def _whole(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else _REPLACEMENT


def value_answer(
    value: object,
    status: HTTPStatus = HTTPStatus.OK,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with one value."""
    return Response(pack_json(value), status, {**_HEADERS, **(headers or {})})


def empty_answer(status: HTTPStatus, headers: Mapping[str, str] | None = None) -> Response:
    """Answer without a body."""
    kept = {name: text for name, text in _HEADERS.items() if name != "content-type"}
    return Response(b"", status, {**kept, **(headers or {})})


def made_answer(*, is_new: bool) -> Response:
    """Answer a PUT: it was created, or was there."""
    return empty_answer(HTTPStatus.CREATED if is_new else HTTPStatus.NO_CONTENT)


def refusal(
    status: HTTPStatus, error: str, reason: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Answer why not, in RabbitMQ's form."""
    return value_answer({"error": error, "reason": reason}, status, headers)


def front_page() -> Response:
    """Answer a browser that asks for the pages that a RabbitMQ has here."""
    return Response(
        "Hutch has no web page; RabbitMQ's management API begins at /api/overview.\n",
        media_type="text/plain",
    )


def not_found(reason: str | None = None) -> Response:
    """Answer that there is no such thing, or no such path and perhaps why."""
    return refusal(HTTPStatus.NOT_FOUND, "Object Not Found", reason or NOT_FOUND)


class ApiRefusal(Exception):
    """The request ends with this answer."""

    def __init__(
        self,
        status: HTTPStatus,
        error: str,
        reason: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(reason)
        self.answer = refusal(status, error, reason, headers)


def bad_request(reason: str) -> ApiRefusal:
    """Return the refusal of a request that cannot be read."""
    return ApiRefusal(HTTPStatus.BAD_REQUEST, "bad_request", reason)


async def in_slices(items: Iterable[T], size: int = SLICE) -> AsyncIterator[T]:
    """Yield items one by one; other requests run after each slice, there may be ten thousand.

    A slice is over sooner if its items take long: each may be looked at for a pattern.
    """
    time_slice = Slice()
    for number, item in enumerate(items, start=1):
        yield item
        if time_slice.is_over() or number % size == 0:
            await asyncio.sleep(0)
            time_slice.begin()


class Listed(NamedTuple):
    """A list, made in slices.

    Attributes:
        items: What there is; nothing changes it meanwhile.
        view: Makes what JSON can hold of one.
    """

    items: Iterable[Any]
    view: Callable[[Any], Mapping[str, object]]


class Paired(NamedTuple):
    """An object that has many names, made in slices."""

    pairs: Mapping[str, object]


def sliced_answer(value: object) -> Response:
    """Answer with a value, which may be long: other requests run between its slices.

    Args:
        value: Whatever JSON can hold, or is Listed or Paired; so may be the fields of an object.
    """
    return _SlicedAnswer(_parts(value)) if _is_sliced(value) else value_answer(value)


def _is_sliced(value: object) -> bool:
    within = value.values() if isinstance(value, dict) else ()
    return isinstance(value, Listed | Paired) or any(map(_is_sliced, within))


async def _parts(value: object) -> AsyncIterator[str]:
    if isinstance(value, Listed):
        parts = _items(value)
    elif isinstance(value, Paired):
        parts = _pairs(value)
    elif isinstance(value, dict) and _is_sliced(value):
        parts = _fields(value)
    else:
        yield pack_json(value)
        return
    async for part in parts:
        yield part


async def _items(listed: Listed) -> AsyncIterator[str]:
    begin = "["
    some: list[str] = []
    size = 0
    for item in listed.items:
        some.append(pack_json(listed.view(item)))
        size += len(some[-1])
        if len(some) == SLICE or size >= SLICE_CHARACTERS:
            yield begin + ",".join(some)
            begin, size = ",", 0
            some.clear()
            await asyncio.sleep(0)
    if some:
        yield begin + ",".join(some)
        begin = ","
    yield "[]" if begin == "[" else "]"


async def _pairs(paired: Paired) -> AsyncIterator[str]:
    left = iter(paired.pairs.items())
    begin = "{"
    while some := dict(islice(left, PAIRS)):
        yield begin + pack_json(some)[1:-1]
        begin = ","
        await asyncio.sleep(0)
    yield "{}" if begin == "{" else "}"


async def _fields(fields: Mapping[str, object]) -> AsyncIterator[str]:
    begin = "{"
    for name, value in fields.items():
        yield f"{begin}{pack_json(name)}:"
        begin = ","
        async for part in _parts(value):
            yield part
    yield "}"


class _SlicedAnswer(Response):
    """A body that is made while it is sent."""

    def __init__(self, parts: AsyncIterator[str]) -> None:
        super().__init__(status_code=HTTPStatus.OK, headers=_HEADERS)
        del self.headers["content-length"]
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        )
        async for part in self._parts:
            async with asyncio.timeout(STALL_S):
                await send({"type": "http.response.body", "body": part.encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
