"""Dispatch of one frame: to its handler, and the reply back.

The steps, in this order and nowhere else: decode → check that it is legal now → handler → reply →
the next state. A refusal becomes the reply's code. A breach of the protocol by the peer
(ProtocolError) goes to the caller. While a handler waits for the store, the connection waits.
"""

import logging
from collections.abc import Callable

from typing_extensions import Buffer

from gateway.pending import run
from gateway.stream.handlers.handshake import propose_tune
from gateway.stream.handlers.table import CHANGES, HANDLERS
from gateway.stream.link import Link
from gateway.stream.refusals import code_of, reason_of
from hutch.stream import codec
from hutch.stream.codec import Decoded
from hutch.stream.codes import in_words
from hutch.stream.commands import State
from hutch.stream.errors import ProtocolError
from hutch.stream.messages import Message

log = logging.getLogger(__name__)


def dispatch(link: Link, frame: Buffer, done: Callable[[BaseException | None], object]) -> None:
    """Handle one whole frame, without its size, of any command but publish.

    Args:
        link: The connection's link.
        frame: The frame's bytes; copied.
        done: Called when the next frame may be handled, with the error if one was not answered,
            else None. May be called before this returns.

    Raises:
        ProtocolError: The frame is wrong, or comes at the wrong moment.
    """
    session = link.session
    decoded = codec.decode_request(frame, session.table)
    is_in_order = session.check(decoded)
    if log.isEnabledFor(logging.DEBUG):
        line = "request peer=%s command=%s message=%s"
        log.debug(line, link.peer, decoded.command.name, str(decoded.message)[:75])

    def answered(outcome: Message | BaseException | None) -> None:
        error = _answer(link, decoded, outcome)
        if not is_in_order:
            session.end()
        elif not session.is_done and not isinstance(outcome, BaseException):
            session.advance(decoded.command)
            if decoded.command.name == "sasl_authenticate" and session.state is State.TUNING:
                propose_tune(link)
        link.replied()
        done(error)

    is_answer = decoded.is_response and decoded.correlation_id is not None
    subject = decoded if is_answer else decoded.message
    work = HANDLERS[decoded.command.name](link, subject)
    patience = link.host.service.patience
    if patience is not None and decoded.command.name in CHANGES:
        work = patience.result(work, late=link.replied)
    run(work, answered)


def _answer(
    link: Link, decoded: Decoded, outcome: Message | BaseException | None
) -> BaseException | None:
    """Send the reply; return the error if it is no refusal, and so has no reply."""
    command, correlation_id = decoded.command, decoded.correlation_id
    if isinstance(outcome, BaseException):
        if isinstance(outcome, ProtocolError):
            return outcome
        code = code_of(outcome)
        if code is None:
            return outcome
        assert correlation_id is not None
        reason = reason_of(outcome)
        line = "request refused peer=%s command=%s code=%s reason=%s"
        log.debug(line, link.peer, command.name, in_words(code), reason)
        link.ports.send(codec.refusal_reply(command, correlation_id, code, reason))
        return None
    if outcome is not None:
        link.ports.send(codec.encode_reply(command, correlation_id, outcome))
    return None
