"""The API as an ASGI application: who asks, what for, may they, and what came of it.

A request is judged in this order, and what fails ends it: where it comes from (a page of another
site is refused), its path and method, who sends it, its body. A body is not looked at before it is
known who sent it.
"""

import base64
import binascii
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from gateway.admin import bodies
from gateway.admin.answers import CHALLENGE, Refused, empty_answer, not_found, refusal
from gateway.admin.call import Awaits, Call, Facts, Handler
from gateway.admin.paths import WrongPath, decode, segments_of
from gateway.admin.routes import Resource
from gateway.broker.access.authentication import (
    Authentication,
    LoginRefused,
    Peer,
    is_loopback,
)
from gateway.broker.access.errors import AccessError
from gateway.broker.administration.administration import Actor, Administration, Role
from gateway.broker.administration.errors import AdministrationError
from gateway.broker.administration.requests import translated
from gateway.broker.errors import BrokerError
from store.errors import StoreError

log = logging.getLogger(__name__)

_QUERY_BYTES_MAX: Final = 4096
_QUERY_FIELDS_MAX: Final = 32
_CREDENTIALS_BYTES_MAX: Final = 4096

_STATUS: Final[Mapping[str, tuple[HTTPStatus, str]]] = {
    "wrong_request": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "unusable_definitions": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "refused": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "not_found": (HTTPStatus.NOT_FOUND, "Object Not Found"),
    "conflict": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "not_allowed": (HTTPStatus.UNAUTHORIZED, "not_authorized"),
    "failed": (HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"),
}
"""What each kind of refusal is to HTTP, in RabbitMQ's words."""


@dataclass(frozen=True, slots=True)
class Backing:
    """What the application answers from."""

    administration: Administration
    authentication: Authentication
    facts: Facts
    awaits: Awaits


class Application:
    """Answers requests by a table of resources."""

    def __init__(self, backing: Backing, resources: Iterable[Resource]) -> None:
        self._backing = backing
        self._large = bodies.LargeBodies()
        routes = [
            Route(resource.path, endpoint=_Endpoint(self, resource)) for resource in resources
        ]
        self._router = Router(routes, redirect_slashes=False, default=_nowhere)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = self._misplaced(scope)
        if answer is not None:
            await answer(scope, receive, send)
            return
        # Names stay encoded until the path is matched: one with a slash is one segment.
        segments = segments_of(scope["raw_path"])
        path = "/" + "/".join(segment.decode("ascii") for segment in segments)
        await self._router({**scope, "path": path}, receive, send)

    def _misplaced(self, scope: Scope) -> Response | None:
        """Return why a request is not even looked at, None if it is."""
        headers = Headers(scope=scope)
        try:
            segments_of(scope["raw_path"])
        except WrongPath as error:
            return refusal(HTTPStatus.BAD_REQUEST, "bad_request", str(error))
        if len(scope["query_string"]) > _QUERY_BYTES_MAX:
            return refusal(HTTPStatus.REQUEST_URI_TOO_LONG, "bad_request", "the query is too long")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return refusal(HTTPStatus.FORBIDDEN, "not_authorized", "this page is of another site")
        return None

    async def answer(self, resource: Resource, scope: Scope, receive: Receive) -> Response:
        """Answer a request on a resource."""
        if scope["method"] == "OPTIONS":
            return empty_answer(HTTPStatus.OK, _allow(resource))
        try:
            handler = _handler_of(resource, scope["method"])
            actor = await self._actor(scope)
            return await handler(await self._call(resource, scope, receive, actor))
        except Refused as refused:
            return refused.answer
        except AdministrationError as error:
            return _refused(error)
        except (AccessError, BrokerError, StoreError) as error:
            return _refused(translated(error))

    async def _actor(self, scope: Scope) -> Actor:
        """Return who asks. Raises Refused."""
        backing = self._backing
        header = Headers(scope=scope).get("authorization")
        if header is None:
            raise _unknown()
        data = _plain_of(header)
        host = (scope.get("client") or ("",))[0]
        peer = Peer(bool(host) and is_loopback(host), host, "http")
        try:
            user = await backing.awaits(backing.authentication.log_in("PLAIN", data, peer))
        except LoginRefused as refused:
            log.warning("login refused over http peer=%s user=%r", host, refused.user)
            raise _unknown() from None
        actor = Actor.of(backing.administration.access, user)
        if Role.MANAGEMENT not in actor.roles:
            log.warning("user without a tag refused over http peer=%s user=%r", host, user)
            raise _unknown("Not management user")
        return actor

    async def _call(self, resource: Resource, scope: Scope, receive: Receive, actor: Actor) -> Call:
        names = {name: decode(text.encode("ascii")) for name, text in scope["path_params"].items()}
        body = b""
        if scope["method"] in {"PUT", "POST"}:
            body = await self._body(resource, scope, receive)
        is_object = bool(body) and not resource.reads_body
        return Call(
            self._backing.administration,
            actor,
            self._backing.facts,
            self._backing.awaits,
            names,
            _query(scope["query_string"]),
            bodies.json_object(body) if is_object else {},
            body,
        )

    async def _body(self, resource: Resource, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        if headers.get("content-encoding", "identity") != "identity":
            raise bodies.not_json()
        if resource.body_bytes_max <= bodies.SMALL_BYTES_MAX:
            return await bodies.read_body(receive, headers, resource.body_bytes_max)
        async with self._large.turn:
            return await bodies.read_body(receive, headers, resource.body_bytes_max)


def _unknown(reason: str = "Not_Authorized") -> Refused:
    return Refused(HTTPStatus.UNAUTHORIZED, "not_authorized", reason, CHALLENGE)


def _handler_of(resource: Resource, method: str) -> Handler:
    """Return who answers a method. Raises Refused."""
    handler = resource.handlers.get(method)
    if handler is not None:
        return handler
    status, reason = HTTPStatus.METHOD_NOT_ALLOWED, "this method is not for this path"
    raise Refused(status, "bad_request", reason, _allow(resource))


def _allow(resource: Resource) -> dict[str, str]:
    return {"allow": ", ".join([*resource.handlers, "OPTIONS"])}


class _Endpoint:
    """A resource as the router calls it."""

    def __init__(self, application: Application, resource: Resource) -> None:
        self._application = application
        self._resource = resource

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = await self._application.answer(self._resource, scope, receive)
        except bodies.BodyCutShort:
            return
        except Exception:  # the edge of a request: the next may be fine
            log.exception("http request failed method=%s path=%s", scope["method"], scope["path"])
            reason = "the server failed at this; its log says how"
            answer = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", reason)
        try:
            await answer(scope, receive, send)
        except TimeoutError:
            log.warning("http client does not read its answer, cut off path=%s", scope["path"])
            raise


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    await not_found()(scope, receive, send)


def _refused(error: AdministrationError) -> Response:
    status, kind = _STATUS[error.code]
    if status is HTTPStatus.NOT_FOUND:
        return not_found()
    return refusal(status, kind, str(error))


def _plain_of(header: str) -> bytes:
    """Return the credentials of a header as the mechanism PLAIN has them. Raises Refused."""
    scheme, _, text = header.partition(" ")
    if scheme.lower() != "basic" or len(text) > _CREDENTIALS_BYTES_MAX:
        raise _unknown()
    try:
        user, colon, password = base64.b64decode(text.strip(), validate=True).partition(b":")
    except (binascii.Error, ValueError):
        raise _unknown() from None
    if not colon or b"\x00" in user + password:
        raise _unknown()
    return b"\x00".join((b"", user, password))


def _query(text: bytes) -> Mapping[str, str]:
    try:
        pairs: list[tuple[Any, Any]] = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX
        )
    except ValueError:
        return {}
    return dict(pairs)
