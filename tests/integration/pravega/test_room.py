"""What users who may write alone make in a stream takes no room of those who may configure it."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from gateway.pravega.controller.rpc import controller_pb2 as pb
from gateway.pravega.segments import SEGMENTS_MAX, USER_TRANSIENTS_MAX
from gateway.pravega.transients import OWN_MAX
from hutch.pravega import messages as m
from hutch.pravega.error_messages import ErrorMessage
from hutch.pravega.layout import WireMessage
from tests.integration.pravega.users import BESIDE, config, controller, of, users_of_streams
from tests.integration.server import HutchServer
from tests.pravega_client import WRITER, WireClient
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(250)

SEGMENT = "mine/stream/0.#epoch.0"
STREAM = "^mine/stream$"
CONNECTIONS = SEGMENTS_MAX // OWN_MAX + 1
"""If each may have all that a connection may have, they fill the stream."""


def token_of(server: HutchServer, user: str) -> str:
    with controller(server, user) as client:
        token: str = client.ask("getDelegationToken", of("mine", "stream")).delegationToken
    return token


def test_transient_segments_of_a_writer_refuse_nothing_to_others_and_are_bounded(
    tmp_path: Path,
) -> None:
    file = users_of_streams(
        tmp_path,
        all=(".*", ".*", ".*"),
        maker=(STREAM, "", ""),
        writer=("", STREAM, ""),
        other=("", STREAM, ""),
    )
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server, ExitStack() as up:
        with controller(server, "all") as client:
            client.ask("createScope", pb.ScopeInfo(scope="mine"))
            client.ask("createStream", config("mine", "stream"))
        tokens = {user: token_of(server, user) for user in ("maker", "writer", "other")}
        answers: Counter[type[WireMessage]] = Counter()
        request = m.CreateTransientSegment(1, WRITER, SEGMENT, tokens["writer"])
        for _ in range(CONNECTIONS):
            writer = up.enter_context(WireClient(*server.store))
            writer.send(*[request] * OWN_MAX)
            answers.update(type(writer.receive()) for _ in range(OWN_MAX))
        refused = CONNECTIONS * OWN_MAX - USER_TRANSIENTS_MAX
        assert answers == {m.SegmentCreated: USER_TRANSIENTS_MAX, ErrorMessage: refused}

        with WireClient(*server.store) as maker, WireClient(*server.store) as other:
            name = "mine/stream/9.#epoch.9"
            maker.ask(m.CreateSegment(1, name, 0, 0, tokens["maker"]), m.SegmentCreated)
            theirs = m.CreateTransientSegment(1, WRITER, SEGMENT, tokens["other"])
            other.ask(theirs, m.SegmentCreated)
        with controller(server, "maker") as client:
            halves = [pb.ScaleRequest.KeyRangeEntry(start=low, end=low + 0.5) for low in (0.0, 0.5)]
            scale = pb.ScaleRequest(
                streamInfo=of("mine", "stream"), sealedSegments=[0], newKeyRanges=halves
            )
            assert client.ask("scale", scale).status == pb.ScaleResponse.STARTED

        up.pop_all().close()
        with WireClient(*server.store) as writer:

            def may_again() -> bool:
                writer.send(request)
                return isinstance(writer.receive(), m.SegmentCreated)

            wait_until(may_again)
        server.terminate()
