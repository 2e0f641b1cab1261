"""Answers of the API: a value, a long list in slices, nothing, or why not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from http import HTTPStatus
from itertools import islice
from typing import Final, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.admin.json_text import pack_json

T = TypeVar("T")

SLICE: Final = 32
"""So many objects of a list are made in one turn of the event loop: a millisecond or two."""
STALL_S: Final = 30.0
"""How long a client may leave an answer unread."""

_HEADERS: Final = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
}
CHALLENGE: Final = {"www-authenticate": 'Basic realm="RabbitMQ Management"'}

NOT_FOUND: Final = "Not Found"


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


def not_found() -> Response:
    """Answer that there is no such thing, or no such path."""
    return refusal(HTTPStatus.NOT_FOUND, "Object Not Found", NOT_FOUND)


class Refused(Exception):
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


def list_answer(items: Iterable[T], view: Callable[[T], object]) -> Response:
    """Answer with a list, which may be long: others are served between its slices.

    Args:
        items: What there is; nothing changes it meanwhile.
        view: Makes what JSON can hold of one.
    """
    return _SlicedAnswer(_slices(items, view))


def page_answer(
    items: Iterable[T], view: Callable[[T], object], numbers: Mapping[str, int]
) -> Response:
    """Answer with an object that holds a list, made in slices too, and numbers about it."""
    return _SlicedAnswer(_page(_slices(items, view), numbers))


def parts_answer(parts: AsyncIterator[str]) -> Response:
    """Answer with JSON that is made part by part."""
    return _SlicedAnswer(parts)


async def _slices(items: Iterable[T], view: Callable[[T], object]) -> AsyncIterator[str]:
    left = iter(items)
    begin = "["
    while some := [pack_json(view(item)) for item in islice(left, SLICE)]:
        yield begin + ",".join(some)
        begin = ","
        await asyncio.sleep(0)
    yield "[]" if begin == "[" else "]"


async def _page(items: AsyncIterator[str], numbers: Mapping[str, int]) -> AsyncIterator[str]:
    yield '{"items":'
    async for part in items:
        yield part
    yield "," + pack_json(numbers)[1:]


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
