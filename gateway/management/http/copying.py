"""Copies of the data directory over HTTP, for members of the cluster that ask with their token.

POST   /cluster/copy          begins a copy, or goes on with one; returns what there is to fetch
GET    /cluster/copy/NUMBER   a part of a file, by the header Range
DELETE /cluster/copy          the copy is whole
"""

import asyncio
import re
from http import HTTPStatus
from typing import Final

from starlette.datastructures import Headers
from starlette.responses import FileResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.broker.cluster import Copies
from gateway.management.http.answers import empty_answer, refusal, value_answer
from gateway.management.http.protocol import LOGGED_IN

PLACE: Final = "/cluster/copy"
MEMBER: Final = "hutch-member"
COPY: Final = "hutch-copy"
"""Headers that say which member asks, and which copy it has begun with."""
_BEARER: Final = "bearer "
_NUMBER: Final = re.compile(re.escape(PLACE) + r"/(\d{1,9})")


class _File(FileResponse):
    """A file, in parts that are worth the way to a thread."""

    chunk_size = 1024 * 1024


class Copying:
    """Answers requests for copies; all others go to the application behind it."""

    def __init__(self, copies: Copies, application: ASGIApp) -> None:
        self._copies = copies
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not scope["path"].startswith(PLACE):
            await self._application(scope, receive, send)
            return
        headers = Headers(scope=scope)
        member, words = headers.get(MEMBER, ""), headers.get("authorization", "")
        token = words[len(_BEARER) :] if words.lower().startswith(_BEARER) else ""
        if not self._copies.lets_in(member, token):
            reason = "this is for members of the cluster, each with the token of its last beat"
            answer = refusal(HTTPStatus.UNAUTHORIZED, "not_authorised", reason)
        else:
            scope["state"][LOGGED_IN]()
            answer = await self._answer(scope, member, headers.get(COPY, ""))
        await answer(scope, receive, send)

    async def _answer(self, scope: Scope, member: str, known: str) -> Response:
        method, path = scope["method"], scope["path"]
        if path == PLACE and method == "POST":
            try:
                copy = await asyncio.to_thread(self._copies.begin, member, known)
            except OSError as error:
                reason = f"the directory cannot be copied: {error.strerror}"
                return refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", reason)
            return value_answer(copy.described())
        if path == PLACE and method == "DELETE":
            await asyncio.to_thread(self._copies.end, member)
            return empty_answer(HTTPStatus.NO_CONTENT)
        number = _NUMBER.fullmatch(path)
        file = None if number is None else self._copies.path(member, int(number[1]))
        if file is None or method != "GET" or not file.exists():
            return refusal(HTTPStatus.NOT_FOUND, "Object Not Found", "there is no such copy here")
        return _File(file, media_type="application/octet-stream")
