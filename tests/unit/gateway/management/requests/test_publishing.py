"""One message to many streams: how many, and whether all of it finds space."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

from gateway.management.errors import WrongRequest
from gateway.management.requests.publishing import KEYS_MAX
from tests.unit.gateway.management.requests.administration_rig import Rig

STREAMS = [f"s-{number}" for number in range(8)]
MESSAGE = bytes(900_000)


@pytest.fixture
def rig(rig: Rig) -> Rig:
    """Streams, all of them bound to one exchange."""
    rig.ask("add_exchange", {"name": "all", "type": "fanout"})
    for name in STREAMS:
        rig.ask("add_stream", {"name": name})
        rig.ask("bind", {"source": "all", "destination": name})
    return rig


def counts(rig: Rig) -> list[int]:
    return [rig.ask("status_of_stream", {"name": name})["offset"] + 1 for name in STREAMS]


def test_a_message_has_no_more_routing_keys_than_a_super_stream_has_partitions(rig: Rig) -> None:
    keys = ["s-1", *(f"nowhere-{number}" for number in range(KEYS_MAX - 1))]
    given = {"exchange": "", "routing_keys": keys}
    assert rig.ask("publish", given, b"record") == {"routed": True}

    with pytest.raises(WrongRequest, match="routing keys"):
        rig.ask("publish", {"exchange": "", "routing_keys": [*keys, "s-2"]}, b"record")
    assert counts(rig) == [0, 1, 0, 0, 0, 0, 0, 0]


def test_a_message_that_does_not_fit_into_all_streams_is_written_to_none(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage: Callable[..., Any] = shutil.disk_usage
    given = {"exchange": "all", "routing_keys": ["k"]}
    with monkeypatch.context() as patch:
        free = 2 * len(STREAMS) * len(MESSAGE) - 1
        patch.setattr(shutil, "disk_usage", lambda path: usage(path)._replace(free=free))
        with pytest.raises(WrongRequest, match="nothing is published"):
            rig.ask("publish", given, MESSAGE)
        assert counts(rig) == [0] * len(STREAMS)
        assert rig.ask("publish", given, b"small") == {"routed": True}

    assert rig.ask("publish", given, MESSAGE) == {"routed": True}
    assert counts(rig) == [2] * len(STREAMS)
