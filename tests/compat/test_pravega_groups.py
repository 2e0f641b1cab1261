"""Groups of readers, as Pravega's Java client says what they are, and as operators see them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from compat.broker.ways import REQUIRE_VARIABLE
from compat.clients.programs import Unavailable
from compat.pravega.java.groups import GROUPS, Said, Scenes
from tests.integration.administrator import ctl
from tests.integration.pravega.conftest import controller_port
from tests.integration.pravega.users import BESIDE, PASSWORD, users_of_streams
from tests.integration.server import HutchServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SCOPE: Final = "mine"
SCENES: Final = (
    *("created", "joined", "read", "scaled", "checkpoint", "through", "checkpoint-again", "more"),
    *("cuts", "compacted", "closed", "compacted-again", "bounded", "offline", "reset"),
    "no-checkpoint",
)
EVENT_BYTES: Final = 17
ENDED: Final = {
    "one/0.#epoch.0": 10 * EVENT_BYTES,
    "one/1.#epoch.0": 10 * EVENT_BYTES,
    "one/2.#epoch.1": 0,
    "one/3.#epoch.1": 0,
}
"""Sizes of the segments that end."""
COMPACTED: Final = ("no-checkpoint", "bounded")
"""A state without a checkpoint that was written down whole. The client takes it for one with a
checkpoint at which nothing was left, and says 0."""


@pytest.fixture
def _built() -> None:
    """Build the program; skip with the reason where it cannot be had."""
    try:
        GROUPS.command()
    except Unavailable as error:
        if os.environ.get(REQUIRE_VARIABLE) == "1":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HutchServer]:
    """A server with a user that may do everything."""
    file = users_of_streams(tmp_path, all=(".*", ".*", ".*"))
    with HutchServer(tmp_path / "data", *BESIDE, "--users", str(file)) as server:
        yield server
        server.terminate()


def shown(server: HutchServer) -> dict[str, Any]:
    """Return the members and unread bytes of each group, as `hutch ctl` shows them."""
    rows = ctl(server, "list_reader_groups", SCOPE, "name,members,unread_bytes")
    return {each["name"]: (each["members"], each["unread_bytes"]) for each in rows}


def check(scene: str, said: Said, members: list[str], unread: int) -> None:
    """Check what is shown of a group by what the client says."""
    assert members == said.members, (scene, said)
    if (scene, said.group) == COMPACTED:
        assert (said.unread, unread) == ("0", 5 * EVENT_BYTES)
    elif said.unread.isdigit():
        # It counts a segment that was read off as unread, and its offset, -1, as what was read.
        ended = sum(1 + ENDED[segment] for segment in read_off(said))
        assert unread == int(said.unread) - ended, (scene, said)
    else:  # it has no number for a checkpoint in the middle of a merge
        assert (scene, said.group) == ("through", "plain"), (scene, said)
        assert 0 <= unread <= 6 * EVENT_BYTES


def read_off(said: Said) -> list[str]:
    """Return the segments that were read off at the last checkpoint, without their scope."""
    places = said.rest[0].removeprefix("checkpoint=").split(",")
    return [
        place.removesuffix(":-1").partition("/")[2] for place in places if place.endswith(":-1")
    ]


@pytest.mark.usefixtures("_built")
def test_members_and_unread_bytes_are_those_that_the_client_says(server: HutchServer) -> None:
    played = []
    address = "127.0.0.1", controller_port(server)
    with Scenes(address, SCOPE, "all", PASSWORD) as scenes:
        for scene, groups in scenes:
            found = shown(server)
            assert found.keys() == {each.group for each in groups}
            for each in groups:
                check(scene, each, *found[each.group])
            played.append(scene)
    assert tuple(played) == SCENES
    assert "cannot be read" not in server.logs
