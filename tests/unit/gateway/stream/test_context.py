"""The settings of the protocol, as its connections take them."""

from dataclasses import asdict

import pytest

from gateway.settings.model import StreamSettings
from gateway.stream.consuming import DELIVER_HEAD_BYTES
from gateway.stream.context import chunk_bytes_max, limits_of, link_settings_of
from tests.unit.gateway.stream.link_rig import MIB


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
