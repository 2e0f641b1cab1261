"""Groups of readers as operators see them, from bytes that Pravega's Java client has written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.pravega.controller.readers.packed import ENTRIES_MAX
from gateway.pravega.controller.readers.states import BYTES_MAX, MARK
from gateway.pravega.controller.rpc import controller_pb2 as pb
from hutch.pravega import messages as m
from tests.controller_client import ControllerClient
from tests.group_states import Scene, begin, begun, changes, framed, recorded, whole
from tests.http_client import Api
from tests.integration.administrator import ctl
from tests.integration.pravega.users import (
    BESIDE,
    PASSWORD,
    config,
    controller,
    of,
    users_of_streams,
)
from tests.integration.server import HutchServer
from tests.integration.turns import Turns
from tests.pravega_client import WireClient

SCOPE: Final = "golden"
SCENES, DATA = recorded()
LENGTHS: Final = {
    "one/0.#epoch.0": 170,
    "one/1.#epoch.0": 170,
    "one/4.#epoch.2": 51,
    "one/5.#epoch.2": 51,
    "two/0.#epoch.0": 221,
}
"""Lengths of the streams' segments in the last scenes; the others are empty."""
LAST: Final = (
    "more",
    "cuts",
    "compacted",
    "closed",
    "compacted-again",
    "bounded",
    "offline",
    "reset",
)
UNREADABLE: Final = "the state of a group of readers cannot be read"
TURN_S: Final = 0.05
ABSENT: Final = -(2**63)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server with the streams and the groups that were recorded; the groups have no state yet."""
    file = users_of_streams(tmp_path, all=(".*", ".*", ".*"))
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        ctl(server, "set_user_tags", "all", "management")
        with controller(server, "all") as client:
            fill(client, server)
        yield server
        server.terminate()


def fill(client: ControllerClient, server: HutchServer) -> None:
    client.ask("createScope", pb.ScopeInfo(scope=SCOPE))
    for name, segments in (("one", 2), ("two", 1)):
        made = config(SCOPE, name)
        made.scalingPolicy.minNumSegments = segments
        client.ask("createStream", made)
    for name in LENGTHS:
        if name.endswith("0"):
            write(server, client, name, b"x" * LENGTHS[name])
    scale(client, [0], {0.0: 0.25, 0.25: 0.5})
    scale(client, [1, 1 << 32 | 2, 1 << 32 | 3], {0.0: 0.5, 0.5: 1.0})
    for name in LENGTHS:
        if name.endswith("2"):
            write(server, client, name, b"x" * LENGTHS[name])
    for group, streams in (("plain", ("one", "two")), ("bounded", ("two",))):
        cuts = [pb.StreamCut(streamInfo=of(SCOPE, stream)) for stream in streams]
        client.ask(
            "createReaderGroup",
            pb.ReaderGroupConfiguration(
                scope=SCOPE, readerGroupName=group, startingStreamCuts=cuts
            ),
        )


def scale(client: ControllerClient, sealed: list[int], ranges: dict[float, float]) -> None:
    keys = [pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in ranges.items()]
    asked = pb.ScaleRequest(
        streamInfo=of(SCOPE, "one"), sealedSegments=sealed, newKeyRanges=keys, scaleTimestamp=1
    )
    assert client.ask("scale", asked).status == pb.ScaleResponse.STARTED


def token_of(client: ControllerClient, stream: str) -> str:
    token: str = client.ask("getDelegationToken", of(SCOPE, stream)).delegationToken
    return token


def write(server: HutchServer, client: ControllerClient, segment: str, *parts: bytes) -> None:
    """Append to a segment, which is one of the scope."""
    token = token_of(client, segment.split("/", maxsplit=1)[0])
    with WireClient(*server.store, token=token) as wire:
        last = max(wire.set_up(f"{SCOPE}/{segment}").last_event_number, 0)
        for number, part in enumerate(parts, start=last + 1):
            wire.append(number, part)


class Segment:
    """The segment in which a group agrees."""

    def __init__(self, server: HutchServer, client: ControllerClient, group: str) -> None:
        self._server, self._client = server, client
        self._name = f"_RG{group}/0.#epoch.0"
        self._group = group
        self._length, self._mark = 0, ABSENT

    def play(self, scene: Scene) -> None:
        """Bring it to what it was after a scene."""
        if data := DATA[self._group][self._length : scene.length]:
            write(self._server, self._client, self._name, data)
            self._length = scene.length
        name = f"{SCOPE}/{self._name}"
        token = token_of(self._client, f"_RG{self._group}")
        with WireClient(*self._server.store, token=token) as wire:
            if scene.mark not in (None, self._mark):
                asked = m.UpdateSegmentAttribute(1, name, MARK, scene.mark, self._mark, token)
                assert wire.ask(asked, m.SegmentAttributeUpdated).success
                self._mark = scene.mark
            wire.ask(m.TruncateSegment(1, name, scene.start, token), m.SegmentTruncated)


def shown(server: HutchServer) -> dict[str, Any]:
    """Return members and unread bytes of the groups, which both ways show alike."""
    path = f"x/pravega/scopes/{SCOPE}/reader-groups"
    rows = Api(*server.management).by("all", PASSWORD).get(path)
    assert ctl(server, "list_reader_groups", SCOPE) == rows
    return {each["name"]: (each["members"], each["unread_bytes"]) for each in rows}


def test_members_and_unread_bytes_are_those_that_the_client_said(server: HutchServer) -> None:
    assert shown(server) == {"plain": ([], None), "bounded": ([], None)}
    with controller(server, "all") as client:
        segments = {group: Segment(server, client, group) for group in DATA}
        for name in LAST:
            scenes = [each for each in SCENES if each.name == name]
            for scene in scenes:
                segments[scene.group].play(scene)

            assert shown(server) == {
                each.group: (each.members, int(each.unread)) for each in scenes
            }, name
    assert UNREADABLE not in server.logs


def test_a_group_whose_state_cannot_be_read_is_shown_without_it(server: HutchServer) -> None:
    with controller(server, "all") as client:
        write(server, client, "_RGplain/0.#epoch.0", b"what is no event of a client")
        write(server, client, "_RGbounded/0.#epoch.0", *[b"\0" * (1 << 20)] * 8, b"\0")

    for _ in range(2):
        assert shown(server) == {"plain": (None, None), "bounded": (None, None)}
    lines = [line for line in server.logs.splitlines() if UNREADABLE in line]
    assert len(lines) == 1, "one line in ten seconds"
    assert f"group={SCOPE}/" in lines[0]


def test_a_state_that_takes_long_leaves_others_their_turns(server: HutchServer) -> None:
    """The state has as many entries as one may have, and makes as many copies of them."""
    many = begun({f"{SCOPE}/one/{number}.#epoch.0": number for number in range(ENTRIES_MAX)})
    copies = [changes(begin(f"{number}")) for number in range(50)]
    data = framed(whole(many), *copies)
    assert len(data) < BYTES_MAX
    with controller(server, "all") as client:
        for group in DATA:
            write(server, client, f"_RG{group}/0.#epoch.0", data)

    with Turns(server) as turns:
        assert shown(server) == {"plain": (None, None), "bounded": (None, None)}
        assert turns.longest_s < TURN_S
    assert f"group={SCOPE}/" in server.logs
