"""Handshake: from a fresh connection to an open one; also closing, and renewing a secret.

A refused login, virtual host or change of user is answered after a delay. During it nothing else of
the connection is read, and the connection ends with the answer. An unknown mechanism is delayed
too, which RabbitMQ does not do: endless requests would cost the server more than the client.

Source: RabbitMQ stream protocol, Authentication; delays and codes as observed on RabbitMQ 4.3.
"""

import logging
from itertools import islice
from typing import Final

from gateway.broker.access.authentication import LoginRefused, Peer, RefusalReason
from gateway.stream.link import Link
from gateway.stream.refusals import Refusal
from gateway.stream.session import HEARTBEAT_S_MAX
from hutch.stream import codec, pipeline
from hutch.stream import messages as m
from hutch.stream.codes import ResponseCode, in_words
from hutch.stream.commands import BY_NAME, State

log = logging.getLogger(__name__)

_PROPERTIES_MAX: Final = 64
"""Most properties of a client that are kept. Clients send about ten, but a frame of 8 KiB before
login may hold 1,300, which took 130 KiB."""
_DELIVER = BY_NAME["deliver"]
_HEARTBEAT: Final = codec.encode_command("heartbeat", m.Heartbeat())
_CODES = {
    RefusalReason.MECHANISM: ResponseCode.SASL_MECHANISM_NOT_SUPPORTED,
    RefusalReason.MALFORMED: ResponseCode.SASL_ERROR,
    RefusalReason.CREDENTIALS: ResponseCode.AUTHENTICATION_FAILURE,
    RefusalReason.LOOPBACK_ONLY: ResponseCode.AUTHENTICATION_FAILURE_LOOPBACK,
    RefusalReason.TOO_MANY: ResponseCode.STREAM_NOT_AVAILABLE,
    RefusalReason.BUSY: ResponseCode.STREAM_NOT_AVAILABLE,
}
"""Codes of refused logins. None says that a server is busy. The one that is told where the password
was not compared is the only one that clients read as passing; to them 8 is a wrong password, and 15
a fault of the server."""
_DELAYED = frozenset(
    (
        ResponseCode.SASL_MECHANISM_NOT_SUPPORTED,
        ResponseCode.AUTHENTICATION_FAILURE,
        ResponseCode.STREAM_NOT_AVAILABLE,
        ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE,
        ResponseCode.SASL_CANNOT_CHANGE_MECHANISM,
        ResponseCode.SASL_CANNOT_CHANGE_USERNAME,
    )
)


async def peer_properties(link: Link, request: m.PeerProperties) -> m.PeerPropertiesReply:
    """Take the client's properties and return the server's."""
    some = islice(request.properties.items(), _PROPERTIES_MAX)
    link.session.greet(dict(some))
    said = link.host.peer_properties
    if link.session.table is pipeline.TABLE:
        started = {pipeline.STARTED: str(link.host.service.about.started_ms)}
        said = said | pipeline.PROPERTIES | started
    return m.PeerPropertiesReply(ResponseCode.OK, said)


async def sasl_handshake(link: Link, _request: m.SaslHandshake) -> m.SaslHandshakeReply:
    """List the mechanisms."""
    mechanisms = link.host.authentication.mechanisms(_peer_of(link))
    return m.SaslHandshakeReply(ResponseCode.OK, mechanisms)


async def sasl_authenticate(link: Link, request: m.SaslAuthenticate) -> m.SaslAuthenticateReply:
    """Log in, or renew the secret once open.

    The reply of a first login is followed by Tune.
    """
    session = link.session
    try:
        if session.is_open:
            await _renew(link, request)
        else:
            session.log_in(await _log_in(link, request), request.mechanism)
    except Refusal as refusal:
        return await _refuse_login(link, refusal)
    return m.SaslAuthenticateReply(ResponseCode.OK)


def propose_tune(link: Link) -> None:
    """Propose frame size and heartbeat, behind the reply of the first login."""
    session = link.session
    link.send("tune", m.Tune(session.server_frame_bytes_max, session.heartbeat_s))


def _peer_of(link: Link) -> Peer:
    ports = link.ports
    return Peer(
        is_loopback=ports.peer_is_loopback,
        address=link.address,
        certificate_user=ports.certificate_user,
        shown=ports.peer,
    )


async def _log_in(link: Link, request: m.SaslAuthenticate) -> str:
    data, peer = request.data or b"", _peer_of(link)
    try:
        return await link.host.authentication.log_in(request.mechanism, data, peer)
    except LoginRefused as refused:
        _tell_in_full(link, refused.user)
        raise Refusal(_CODES[refused.reason]) from None


async def _renew(link: Link, request: m.SaslAuthenticate) -> None:
    """Log in again once open: neither mechanism nor user may change; check all rights again."""
    if request.mechanism != link.session.mechanism:
        _say(link, link.session.user, request.mechanism, "a renewal keeps the mechanism")
        raise Refusal(ResponseCode.SASL_CANNOT_CHANGE_MECHANISM)
    user = await _log_in(link, request)
    if user != link.session.user:
        _say(link, user, request.mechanism, "a renewal keeps the user")
        raise Refusal(ResponseCode.SASL_CANNOT_CHANGE_USERNAME)
    if not link.host.access.may_enter(user, link.virtual_host_name):
        _say(link, user, request.mechanism, "the user may not be in the virtual host any more")
        raise Refusal(ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE)
    lost = await link.refused_streams()
    link.after_reply(lambda: link.lose_each(lost))


def _say(link: Link, user: str, mechanism: str, reason: str) -> None:
    """Log the refusal of a renewal."""
    helps = "the client has to renew its login as it was, or to open another connection"
    link.host.authentication.refused(_peer_of(link), reason, helps, user, mechanism)


def _tell_in_full(link: Link, user: str) -> None:
    if "\\" in user and user == link.ports.certificate_user:
        # Lines about logins double each backslash; this is the name that an administrator types.
        link.say(log.warning, "name of the user that the certificate names user=%s", user)


async def _refuse_login(link: Link, refusal: Refusal) -> m.SaslAuthenticateReply:
    if refusal.code in _DELAYED:
        await link.ports.wait(link.host.settings.refusal_delay_ms)
    link.session.end()
    return m.SaslAuthenticateReply(refusal.code)


async def tune(link: Link, request: m.Tune) -> None:
    """Take the client's frame size and heartbeat."""
    if request.heartbeat_s > HEARTBEAT_S_MAX:
        link.session.end()
        return
    link.session.tune(request.frame_bytes_max, request.heartbeat_s)
    _begin_heartbeats(link)


def _begin_heartbeats(link: Link) -> None:
    """Send heartbeats, and expect them, as agreed on."""

    def send() -> None:
        if not link.session.has_entered:
            link.ports.abort()  # as the reference does when Open has not come by then
        elif not link.session.is_closing:
            link.ports.send(_HEARTBEAT)

    link.ports.beat(link.session.heartbeat_s, send)


async def open_virtual_host(link: Link, request: m.Open) -> m.OpenReply:
    """Enter a virtual host."""
    virtual_host, user = link.host.virtual_hosts(request.virtual_host), link.session.user
    reason = link.reason_to_refuse(user, request.virtual_host)
    if virtual_host is None or reason:
        line = "virtual host refused peer=%s user=%r host=%r reason=%s"
        link.say(log.warning, line, link.peer, user, request.virtual_host, reason)
        await link.ports.wait(link.host.settings.refusal_delay_ms)
        link.session.end()
        return m.OpenReply(ResponseCode.VIRTUAL_HOST_ACCESS_FAILURE, {})
    if link.session.state is State.TUNING:
        link.session.tune(link.session.server_frame_bytes_max, link.session.heartbeat_s)
        _begin_heartbeats(link)
    link.session.enter(request.virtual_host)
    link.enter(virtual_host)
    settings = link.host.settings
    return m.OpenReply(
        ResponseCode.OK,
        {
            "advertised_port": str(settings.advertised_port),
            "advertised_host": settings.advertised_host,
        },
    )


async def close(link: Link, request: m.Close) -> m.Status:
    """Answer the client's Close; the connection ends with the answer."""
    line = "client closes peer=%s code=%s reason=%r"
    log.debug(line, link.peer, in_words(request.code), request.reason)
    return m.Status(ResponseCode.OK)


async def heartbeat(_link: Link, _request: m.Heartbeat) -> None:
    """Do nothing: any byte counts as a sign of life."""


async def exchange_command_versions(
    link: Link, request: m.ExchangeCommandVersions
) -> m.CommandVersionsReply:
    """Say which commands the server takes; learn whether the client takes Deliver version 2."""
    for entry in request.commands:
        if entry.key == _DELIVER.key and entry.version_max == _DELIVER.version_max:
            link.session.take_deliver(entry.version_max)
    return m.CommandVersionsReply(ResponseCode.OK, link.session.table.versions)
