"""The API as an ASGI application: routing, login, bodies and errors.

A request is judged in this order, and the first failure ends it: its origin (a page of another
site is refused), its path and method, its user, its body. A body is not read before the user is
known.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import compile_path
from starlette.types import Message, Receive, Scope, Send

from gateway.broker.access.authentication import (
    RETRY_AFTER_S,
    UNREAD,
    Authentication,
    LoginRefused,
    Peer,
)
from gateway.broker.access.credentials import basic_credentials
from gateway.broker.access.refusals import in_command
from gateway.broker.errors import AccessError, BrokerError
from gateway.management.administration import Actor, Administration, Role
from gateway.management.errors import AdministrationError, NotFound
from gateway.management.http import bodies
from gateway.management.http.answers import (
    CHALLENGE,
    ApiRefusal,
    bad_request,
    empty_answer,
    front_page,
    not_found,
    refusal,
)
from gateway.management.http.call import ApiCall, AwaitsBroker, ServerFacts
from gateway.management.http.paths import WrongPath, decode, segments_of, without_secrets
from gateway.management.http.protocol import HEADER_BYTES_MAX, LOGGED_IN, PROTOCOL
from gateway.management.http.routes import ApiMethod, ApiPath, reason_of
from gateway.management.http.views import health
from gateway.management.requests.refusals import translated
from gateway.network.addresses import is_loopback, shown
from store.errors import StoreError

log = logging.getLogger(__name__)

_HEADER_MORE_BYTES: Final = 4  # a colon, a space, and the line's end
_QUERY_BYTES_MAX: Final = 4096
_QUERY_FIELDS_MAX: Final = 32
_BASIC: Final = "Basic credentials of a user with the tag management, or a higher one"
_PERCENT: Final = re.compile(b"%(?![0-9A-Fa-f]{2})")
_READ: Final = frozenset(("GET", "HEAD"))
_CHANGES: Final = frozenset(("PUT", "POST", "DELETE"))
_ONCE: Final = ("authorization", "content-type", "if-match", "if-none-match", "origin")
"""Headers of which a second one could be read instead of the first."""

_STATUS: Final[Mapping[str, tuple[HTTPStatus, str]]] = {
    "wrong_request": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "unusable_definitions": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "refused": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "not_found": (HTTPStatus.NOT_FOUND, "Object Not Found"),
    "conflict": (HTTPStatus.BAD_REQUEST, "bad_request"),
    "not_allowed": (HTTPStatus.UNAUTHORIZED, "not_authorised"),
    "overdue": (HTTPStatus.SERVICE_UNAVAILABLE, "service_unavailable"),
    "failed": (HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error"),
}
"""Status and error of each kind of refusal, in RabbitMQ's words."""


@dataclass(frozen=True, slots=True)
class ApiBacking:
    """Parts of the server that the application needs."""

    administration: Administration
    authentication: Authentication
    facts: ServerFacts
    awaits: AwaitsBroker


class Application:
    """Answers requests by a table of resources."""

    def __init__(self, backing: ApiBacking, resources: Iterable[ApiPath]) -> None:
        self._backing = backing
        self._large = bodies.LargeBodies()
        self._paths = [(compile_path(resource.path)[0], resource) for resource in resources]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = _Exchange(scope, receive, send)
        try:
            answer = await self._routed(scope, exchange.receive)
        except ApiRefusal as refused:
            answer = refused.answer
        except bodies.BodyCutShort:
            return
        except Exception:  # the edge of a request: the next may be fine
            path = without_secrets(scope["path"])
            log.exception("http request failed method=%s path=%s", scope["method"], path)
            reason = "the server failed at this; its log says how"
            answer = refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", reason)
        try:
            await answer(scope, exchange.receive, exchange.send)
        except TimeoutError:
            path = without_secrets(scope["path"])
            log.warning("http client does not read its answer, cut off path=%s", path)
            raise

    async def _routed(self, scope: Scope, receive: Receive) -> Response:
        """Answer a request by the resource of its path. Raises ApiRefusal."""
        path = _path_of(scope)
        _check_headers(scope, Headers(scope=scope))
        if scope["method"] in _READ and (open_answer := self._opened(path)) is not None:
            return open_answer
        for pattern, resource in self._paths:
            if (found := pattern.match(path)) is not None:
                return await self._answer(resource, scope, receive, found.groupdict())
        return not_found(reason_of(path))

    def _opened(self, path: str) -> Response | None:
        """Return the answer for a path that takes no login; None for any other."""
        match path:
            case "/":
                return front_page()
            case health.LIVE:
                return health.passed()
            case health.READY:
                return health.in_service(self._backing.administration.service)
        return None

    async def _answer(
        self, resource: ApiPath, scope: Scope, receive: Receive, names: Mapping[str, str]
    ) -> Response:
        """Answer a request on a resource, with the names in its path as they are written.

        Raises:
            ApiRefusal: Without an answer of the handler.
        """
        if scope["method"] == "OPTIONS":
            return empty_answer(HTTPStatus.OK, _allow(resource))
        try:
            endpoint = _endpoint_of(resource, scope["method"])
            actor = await self._actor(scope)
            call = await self._call(endpoint, scope, receive, actor, names)
            look = resource.handlers.get("GET")
            if not await _conditions_hold(scope["method"], Headers(scope=scope), look, call):
                return empty_answer(HTTPStatus.PRECONDITION_FAILED)
            return await endpoint(call)
        except AdministrationError as error:
            return _refused(error)
        except (AccessError, BrokerError, StoreError) as error:
            return _refused(translated(error))

    async def _actor(self, scope: Scope) -> Actor:
        """Log in; the connection is no stranger's from then on. Raises ApiRefusal."""
        backing = self._backing
        host, port = scope.get("client") or ("", 0)
        is_near = bool(host) and is_loopback(host)
        peer = Peer(is_near, host, PROTOCOL, shown=shown(host, port))
        credentials = basic_credentials(Headers(scope=scope).get("authorization", ""))
        if credentials is None:
            backing.authentication.refused(peer, "no name and password came", _BASIC)
            raise _unknown()
        data = b"\x00".join((b"", *credentials))  # as the mechanism PLAIN has them
        try:
            user = await backing.awaits(backing.authentication.log_in("PLAIN", data, peer))
        except LoginRefused as refused:
            raise (_busy() if refused.reason.is_unread else _unknown()) from None
        actor = Actor.of(backing.administration.access, user)
        if Role.MANAGEMENT not in actor.roles:
            helps = f"hutch ctl set_user_tags {in_command(user)} management"
            backing.authentication.refused(peer, "the user has no tag", helps, user)
            status, reason = HTTPStatus.UNAUTHORIZED, "Not management user"
            raise ApiRefusal(status, "not_authorised", reason)
        scope["state"][LOGGED_IN]()
        return actor

    async def _call(
        self,
        endpoint: ApiMethod,
        scope: Scope,
        receive: Receive,
        actor: Actor,
        names: Mapping[str, str],
    ) -> ApiCall:
        body = b""
        if scope["method"] in {"PUT", "POST"}:
            body = await self._body(endpoint, scope, receive, actor)
            actor = self._still(actor)
        is_object = bool(body) and not endpoint.reads_body
        return ApiCall(
            self._backing.administration,
            actor,
            self._backing.facts,
            self._backing.awaits,
            {name: decode(text.encode("ascii")) for name, text in names.items()},
            _query(scope["query_string"]),
            await self._object(body) if is_object else {},
            body,
        )

    async def _object(self, body: bytes) -> Mapping[str, Any]:
        """Read a body that is a JSON object, a large one beside all else. Raises ApiRefusal."""
        if len(body) <= bodies.QUICK_BYTES_MAX:
            return bodies.json_object(body)
        read = self._backing.administration.done(partial(bodies.json_object, body))
        return await self._backing.awaits(read)

    def _still(self, actor: Actor) -> Actor:
        """Return the actor with its roles of now: a body may take minutes. Raises ApiRefusal."""
        now = actor.now(self._backing.administration.access)
        if Role.MANAGEMENT not in now.roles:
            raise _unknown()
        return now

    async def _body(
        self, endpoint: ApiMethod, scope: Scope, receive: Receive, actor: Actor
    ) -> bytes:
        """Read a body. Raises ApiRefusal, NotAllowed."""
        headers = Headers(scope=scope)
        if headers.get("content-encoding", "identity") != "identity":
            raise bodies.not_json()
        bytes_max = endpoint.body_bytes_max
        if bytes_max > bodies.SMALL_BYTES_MAX:
            actor.require(endpoint.role)  # before so much is read
        if bytes_max <= bodies.SMALL_BYTES_MAX or bodies.is_small(headers):
            return await bodies.read_body(receive, headers, bytes_max)
        async with self._large.turn(actor.name):
            return await bodies.read_body(receive, headers, bytes_max)


def _unknown() -> ApiRefusal:
    return ApiRefusal(HTTPStatus.UNAUTHORIZED, "not_authorized", "Not_Authorized", CHALLENGE)


def _busy() -> ApiRefusal:
    again = {"retry-after": str(RETRY_AFTER_S)}
    return ApiRefusal(HTTPStatus.SERVICE_UNAVAILABLE, "busy", UNREAD, again)


def _endpoint_of(resource: ApiPath, method: str) -> ApiMethod:
    """Return the endpoint of a method. Raises ApiRefusal."""
    endpoint = resource.handlers.get(method)
    if endpoint is not None:
        return endpoint
    status, reason = HTTPStatus.METHOD_NOT_ALLOWED, "this method is not for this path"
    raise ApiRefusal(status, "bad_request", reason, _allow(resource))


def _allow(resource: ApiPath) -> dict[str, str]:
    return {"allow": ", ".join([*resource.handlers, "OPTIONS"])}


class _Exchange:
    """One request and its answer: an answer before the end of the body ends the connection.

    What a stranger would still send is not waited for.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        self._is_read = not has_body
        self._receive = receive
        self._send = send

    async def receive(self) -> Message:
        """Receive, and note the end of the body."""
        message = await self._receive()
        if not message.get("more_body", False):
            self._is_read = True
        return message

    async def send(self, message: Message) -> None:
        """Send; where the body is not read, say that this is the last answer."""
        if message["type"] == "http.response.start" and not self._is_read:
            headers = [*message["headers"], (b"connection", b"close")]
            message = {**message, "headers": headers}
        await self._send(message)


def _refused(error: AdministrationError) -> Response:
    status, kind = _STATUS[error.code]
    if status is HTTPStatus.NOT_FOUND:
        return not_found()
    return refusal(status, kind, str(error))


def _path_of(scope: Scope) -> str:
    """Return a path with its names as they are encoded. Raises ApiRefusal."""
    try:
        segments = segments_of(scope["raw_path"])
    except WrongPath as error:
        raise bad_request(str(error)) from None
    return "/" + b"/".join(segments).decode("ascii")


def _check_headers(scope: Scope, headers: Headers) -> None:
    """Check what can be judged before it is known what is asked. Raises ApiRefusal."""
    size = sum(len(name) + len(value) + _HEADER_MORE_BYTES for name, value in scope["headers"])
    if size + len(scope["raw_path"]) > HEADER_BYTES_MAX:
        status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        raise ApiRefusal(status, "bad_request", f"headers have {HEADER_BYTES_MAX} bytes at most")
    if any(len(headers.getlist(name)) > 1 for name in _ONCE):
        raise bad_request("a header is said twice")
    if "transfer-encoding" in headers and "content-length" in headers:
        raise bad_request("a body has one length: announced, or in chunks")
    if len(scope["query_string"]) > _QUERY_BYTES_MAX:
        raise ApiRefusal(HTTPStatus.REQUEST_URI_TOO_LONG, "bad_request", "the query is too long")
    origin = headers.get("origin")
    if origin is not None and _host_of(origin) != headers.get("host"):
        raise ApiRefusal(HTTPStatus.FORBIDDEN, "not_authorized", "this page is of another site")


def _host_of(origin: str) -> str | None:
    """Return the host of a page's origin; None if it is no address."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _query(text: bytes) -> Mapping[str, str]:
    """Return the fields of a query. Raises ApiRefusal: what is not read cannot be left out."""
    if _PERCENT.search(text) is not None:
        raise _unreadable()
    try:
        pairs: list[tuple[Any, Any]] = parse_qsl(
            text.decode("ascii"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX
        )
    except ValueError:
        raise _unreadable() from None
    return dict(reversed(pairs))  # the first of a name counts, as in RabbitMQ


def _unreadable() -> ApiRefusal:
    return bad_request(f"a query is percent-encoded ASCII of at most {_QUERY_FIELDS_MAX} fields")


async def _conditions_hold(
    method: str, headers: Headers, look: ApiMethod | None, call: ApiCall
) -> bool:
    """Return whether a request's conditions hold; those that only read have none.

    Nothing has an entity tag here, as in RabbitMQ: one that a client names is never that of what is
    there. So `If-Match` holds only as `*`, for what is there, and `If-None-Match` only for what is
    not. What is there is told by `look`, GET on the same path; where there is none, and for POST,
    it is the path itself.

    Source: RFC 9110, section 13; RabbitMQ 4.3 as observed.

    Raises:
        AdministrationError: The user may not see the object of the conditions.
    """
    matches, others = headers.get("if-match"), headers.get("if-none-match")
    if method not in _CHANGES or (matches is None and others is None):
        return True
    is_there = look is None or method == "POST" or await _finds(look, call)
    if matches is not None and not (is_there and matches.strip() == "*"):
        return False
    return others is None or not is_there


async def _finds(look: ApiMethod, call: ApiCall) -> bool:
    try:
        await look(call)
    except NotFound:
        return False
    except (AccessError, BrokerError) as error:
        if isinstance(reason := translated(error), NotFound):
            return False
        raise reason from error
    return True
