"""The settings of the protocol, and what the server says of itself."""

from dataclasses import asdict

import pytest

from gateway.settings.model import Settings, StreamSettings
from gateway.stream.consuming import DELIVER_HEAD_BYTES
from gateway.stream.settings import (
    advertised,
    advertised_over_tls,
    chunk_bytes_max,
    limits_of,
    link_settings_of,
)
from tests.unit.gateway.stream.link_rig import MIB


def test_clients_are_told_the_port_that_is_listened_on_unless_another_is_set() -> None:
    settings = Settings()
    assert advertised(settings, 1) == (settings.stream.advertised_host, 1)
    assert advertised_over_tls(settings, 2) == (settings.stream.advertised_host, 2)

    stream = settings.stream.model_copy(update={"advertised_port": 3})
    tls = settings.tls.model_copy(update={"advertised_host": "a", "advertised_port": 4})
    changed = settings.model_copy(update={"stream": stream, "tls": tls})
    assert advertised(changed, 1)[1] == 3
    assert advertised_over_tls(changed, 2) == ("a", 4)


@pytest.mark.parametrize("frame_bytes_max", [0, 8_192, 1_048_576])
def test_the_largest_chunk_fills_a_frame_with_its_deliver(frame_bytes_max: int) -> None:
    size = chunk_bytes_max(StreamSettings(frame_bytes_max=frame_bytes_max))

    assert size + DELIVER_HEAD_BYTES == (frame_bytes_max or 16 * MIB)


def test_connections_and_handlers_get_what_was_set() -> None:
    stream = StreamSettings(
        close_timeout_ms=1_001,
        unconfirmed_entries_max=1_002,
        unconfirmed_entries_resume=1_000,
        send_backlog_pause_bytes=2_000_001,
        send_backlog_bytes_max=90_000_001,
        frame_bytes_max=100_000,
        initial_frame_bytes_max=9_000,
        heartbeat_s=61,
        handshake_step_timeout_ms=1_003,
        refusal_delay_ms=1_004,
        sub_batch_uncompressed_bytes_max=70_000_001,
    )

    assert asdict(limits_of(stream)) == {
        "close_timeout_ms": 1_001,
        "unconfirmed_max": 1_002,
        "unconfirmed_resume": 1_000,
        "backlog_pause_bytes": 2_000_001,
        "backlog_bytes_max": 90_000_001,
    }
    assert asdict(link_settings_of(stream, ("here", 5))) == {
        "frame_bytes_max": 100_000,
        "initial_frame_bytes_max": 9_000,
        "chunk_bytes_max": 100_000 - DELIVER_HEAD_BYTES,
        "heartbeat_s": 61,
        "handshake_step_timeout_ms": 1_003,
        "refusal_delay_ms": 1_004,
        "sub_batch_uncompressed_bytes_max": 70_000_001,
        "advertised_host": "here",
        "advertised_port": 5,
    }
