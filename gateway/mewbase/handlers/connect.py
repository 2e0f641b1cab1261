"""CONNECT: the login.

Source: mewbase wire protocol, CONNECT; the client of 2016 sends its credentials in `authInfo`.
"""

import logging
from typing import Any, Final

import bson
from bson.codec_options import CodecOptions, DatetimeConversion

from gateway.broker.access.authentication import UNREAD, LoginRefused, Peer
from gateway.mewbase.link import PROTOCOL, ChannelLink
from gateway.mewbase.refusals import LoginFailed
from gateway.mewbase.wire import writing
from gateway.mewbase.wire.errors import Code
from gateway.mewbase.wire.frames import RESPONSE
from gateway.mewbase.wire.reading import Request

log = logging.getLogger(__name__)

_VERSIONS_END: Final = 2.0
INFO_BYTES_MAX: Final = 8 * 1024
"""Largest `authInfo`: no first frame has a larger one, and 16 MiB of it take 0.1 s to read."""
_OPTIONS: Final[CodecOptions[dict[str, Any]]] = CodecOptions(
    datetime_conversion=DatetimeConversion.DATETIME_MS, unicode_decode_error_handler="replace"
)


async def connect(link: ChannelLink, request: Request) -> None:
    """Log the client in, or end the connection with the answer.

    A client that has logged in already may do so again, as the same user.
    """
    session, values = link.session, request.values
    session.take_form(request.names)
    if not _is_served(values["version"]):
        reason = f"version {values['version']!r} is not served: 0 or above, below 2"
        raise LoginFailed(Code.SERVER, reason)
    user = await _log_in(link, request)
    if link.is_closed:
        return  # the client has gone meanwhile
    if session.is_connected:
        if user != session.user:
            raise LoginFailed(Code.NOT_AUTHENTICATED, "a connection keeps its user")
    else:
        _enter(link, user)
    request_id = session.named_in_answer(request.request_id)
    link.ports.send(writing.answer(RESPONSE, rID=request_id, ok=True))


def _is_served(version: str) -> bool:
    try:
        return 0 <= float(version) < _VERSIONS_END
    except ValueError:
        return False


async def _log_in(link: ChannelLink, request: Request) -> str:
    link.mechanism, data = credentials_of(request)
    peer = Peer(link.ports.peer_is_loopback, link.address, PROTOCOL, shown=link.peer)
    try:
        return await link.host.authentication.log_in(link.mechanism, data, peer)
    except LoginRefused as refused:
        if refused.reason.is_unread:
            raise LoginFailed(Code.SERVER, UNREAD) from None
        raise LoginFailed(Code.NOT_AUTHENTICATED, "Authentication failed") from None


def credentials_of(request: Request) -> tuple[str, bytes]:
    """Return the mechanism and its data; a client that sends nothing is anonymous."""
    given: dict[str, Any] = dict(request.values)
    info = request.values["authInfo"]
    if info not in {None, writing.document()}:
        given = _decoded(info) if len(info) <= INFO_BYTES_MAX else {}
        if not given.keys() & {"username", "password"}:
            return "PLAIN", b"\0\0"  # refused: it means to log in
    user, password = given.get("username"), given.get("password")
    if user is None and password is None:
        return "ANONYMOUS", b""
    return "PLAIN", b"\0".join((b"", _raw(user), _raw(password)))


def _decoded(document: bytes) -> dict[str, Any]:
    """Return the document of a login; one that the library cannot read has no credentials."""
    try:
        return bson.decode(document, _OPTIONS)
    except (bson.errors.BSONError, TypeError, ValueError):  # a reference that is none, for one
        return {}


def _raw(value: object) -> bytes:
    return value.encode() if isinstance(value, str) and "\0" not in value else b""


def _enter(link: ChannelLink, user: str) -> None:
    name = link.host.settings.virtual_host
    virtual_host, reason = link.host.virtual_hosts(name), link.reason_to_refuse(user, name)
    if virtual_host is None or reason:
        line = "virtual host refused peer=%s user=%r host=%r reason=%s"
        link.say(log.warning, line, link.peer, user, name, reason)
        raise LoginFailed(Code.NOT_AUTHORISED, reason)
    link.session.log_in(user)
    link.begin(user, virtual_host)
    link.ports.logged_in()
    link.ports.admitted()
    limit_s = link.host.settings.idle_timeout_s
    if limit_s is not None:  # as heartbeats, of which two or three may be missing
        link.ports.beat((limit_s + 1) // 2, lambda: None)
