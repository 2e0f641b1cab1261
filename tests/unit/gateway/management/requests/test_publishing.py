"""One message to many streams: whether it may be published, and whether all of it finds space."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gateway.broker.service import ScarceResource
from gateway.log.records.writing import RECORD_BYTES_MAX
from gateway.management.administration import Actor
from gateway.management.errors import Failed, NotAllowed, NotFound, WrongRequest
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


def test_a_user_may_publish_to_an_exchange_that_is_there_and_that_it_may_write_to(rig: Rig) -> None:
    rig.ask("add_user", {"name": "app", "password_hash": "", "tags": ["management"]})
    rights = {"configure": "", "write": "^all$", "read": ""}
    rig.ask("set_permissions", {"user": "app", "virtual_host": "/", **rights})
    rig.ask("add_exchange", {"name": "other", "type": "fanout"})
    actor = Actor.of(rig.broker.access, "app")

    def publish(exchange: str) -> object:
        given = {"exchange": exchange, "routing_keys": ["s-1"]}
        return rig.ask("publish", given, b"record", actor)

    assert publish("all") == {"routed": True}
    with pytest.raises(NotFound, match="there is no exchange 'none'"):
        publish("none")
    with pytest.raises(NotAllowed, match="'app'"):
        publish("other")
    assert counts(rig) == [1] * len(STREAMS)


def test_a_message_is_published_to_no_internal_exchange(rig: Rig) -> None:
    rig.ask("add_exchange", {"name": "inner", "type": "fanout", "internal": True})
    rig.ask("bind", {"source": "inner", "destination": "s-1"})

    with pytest.raises(WrongRequest, match="cannot publish to internal exchange 'inner' in vhost"):
        rig.ask("publish", {"exchange": "inner", "routing_keys": ["k"]}, b"record")

    assert counts(rig) == [0] * len(STREAMS)


def test_no_message_is_published_while_the_server_is_short_of_disk(rig: Rig) -> None:
    given = {"exchange": "", "routing_keys": ["s-0"]}
    rig.broker.service.set_alarm(ScarceResource.DISK)
    with pytest.raises(WrongRequest, match="the server is short of disk"):
        rig.ask("publish", given, b"record")

    rig.broker.service.clear_alarm(ScarceResource.DISK)

    assert rig.ask("publish", given, b"record") == {"routed": True}
    assert counts(rig)[0] == 1


def test_a_message_is_no_larger_than_a_record(rig: Rig) -> None:
    given = {"exchange": "", "routing_keys": ["s-0"]}
    for size in (RECORD_BYTES_MAX - 1, RECORD_BYTES_MAX):
        assert rig.ask("publish", given, bytes(size)) == {"routed": True}

    with pytest.raises(WrongRequest, match=f"a message has {RECORD_BYTES_MAX} bytes at most"):
        rig.ask("publish", given, bytes(RECORD_BYTES_MAX + 1))

    assert counts(rig)[0] == 2


@pytest.mark.parametrize("broker", [{"frame_bytes_max": 65_536}], indirect=True)
def test_a_message_that_fits_into_no_chunk_is_refused_in_words(rig: Rig) -> None:
    with pytest.raises(WrongRequest, match="the message fits into no chunk"):
        rig.ask("publish", {"exchange": "", "routing_keys": ["s-0"]}, bytes(65_536))

    assert counts(rig)[0] == 0


def test_a_message_that_a_stream_has_not_stored_is_not_said_to_be_routed(rig: Rig) -> None:
    given = {"exchange": "", "routing_keys": ["s-0"]}
    assert rig.ask("publish", given, b"record") == {"routed": True}
    rig.broker.lose_segment("s-0")

    with pytest.raises(Failed):
        rig.ask("publish", given, b"record")

    assert rig.ask("publish", {"exchange": "", "routing_keys": ["s-1"]}, b"r") == {"routed": True}


def test_a_message_is_published_where_the_space_cannot_be_found_out(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = rig.broker.service
    about = replace(service.about, data=service.about.data / "none")
    monkeypatch.setattr(service, "about", about)

    asked = rig.ask("publish", {"exchange": "all", "routing_keys": ["k"]}, MESSAGE)

    assert asked == {"routed": True}
    assert counts(rig) == [1] * len(STREAMS)
