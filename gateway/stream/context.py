"""State that all links of a port share: the broker's parts and the protocol's settings."""

from dataclasses import dataclass

from gateway.broker.hosts.client_session import SessionContext
from gateway.server.front import ConnectionLimits
from gateway.settings.model import StreamSettings
from gateway.stream.advertising import Advertising
from gateway.stream.consuming import DELIVER_HEAD_BYTES
from gateway.stream.session import UNLIMITED_FRAME_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """The settings that the protocol needs; times in milliseconds, sizes in bytes.

    Attributes:
        frame_bytes_max: Proposed to clients; 0 for no limit.
        initial_frame_bytes_max: The limit before Open.
        chunk_bytes_max: Size of the largest joined chunk, header and data.
        heartbeat_s: Proposed to clients; 0 for none.
    """

    frame_bytes_max: int
    initial_frame_bytes_max: int
    chunk_bytes_max: int
    heartbeat_s: int
    handshake_step_timeout_ms: int
    refusal_delay_ms: int
    sub_batch_uncompressed_bytes_max: int
    advertised_host: str
    advertised_port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamContext(SessionContext):
    """State that all links of a port share."""

    settings: LinkSettings
    peer_properties: dict[str, str]
    advertising: Advertising


def chunk_bytes_max(stream: StreamSettings) -> int:
    """Return the size of the largest chunk, header and data: its Deliver fills a frame."""
    return (stream.frame_bytes_max or UNLIMITED_FRAME_BYTES) - DELIVER_HEAD_BYTES


def limits_of(stream: StreamSettings) -> ConnectionLimits:
    """Return the limits of each connection."""
    return ConnectionLimits(
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
