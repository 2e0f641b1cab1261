"""The settings of the stream protocol, as its connections take them."""

from gateway.server.front import Limits
from gateway.settings.model import Settings, StreamSettings
from gateway.stream.consuming import DELIVER_HEAD_BYTES
from gateway.stream.context import LinkSettings
from gateway.stream.session import UNLIMITED_FRAME_BYTES


def chunk_bytes_max(stream: StreamSettings) -> int:
    """Return the size of the largest chunk, header and data: its Deliver fills a frame."""
    return (stream.frame_bytes_max or UNLIMITED_FRAME_BYTES) - DELIVER_HEAD_BYTES


def limits_of(stream: StreamSettings) -> Limits:
    """Return the limits of each connection."""
    return Limits(
        close_timeout_ms=stream.close_timeout_ms,
        unconfirmed_max=stream.unconfirmed_entries_max,
        unconfirmed_resume=stream.unconfirmed_entries_resume,
        backlog_pause_bytes=stream.send_backlog_pause_bytes,
        backlog_bytes_max=stream.send_backlog_bytes_max,
    )


def link_settings_of(stream: StreamSettings, advertised: tuple[str, int]) -> LinkSettings:
    """Return the settings for handlers; clients are told to connect to `advertised`."""
    host, port = advertised
    return LinkSettings(
        frame_bytes_max=stream.frame_bytes_max,
        initial_frame_bytes_max=stream.initial_frame_bytes_max,
        chunk_bytes_max=chunk_bytes_max(stream),
        heartbeat_s=stream.heartbeat_s,
        handshake_step_timeout_ms=stream.handshake_step_timeout_ms,
        refusal_delay_ms=stream.refusal_delay_ms,
        sub_batch_uncompressed_bytes_max=stream.sub_batch_uncompressed_bytes_max,
        advertised_host=host,
        advertised_port=port,
    )


def advertised(settings: Settings, port: int) -> tuple[str, int]:
    """Return the host and port that clients are told; `port` is listened on."""
    stream = settings.stream
    return stream.advertised_host, stream.advertised_port or port


def advertised_over_tls(settings: Settings, port: int) -> tuple[str, int]:
    """Return the host and port that clients over TLS are told; `port` is listened on."""
    tls = settings.tls
    return tls.advertised_host or settings.stream.advertised_host, tls.advertised_port or port
