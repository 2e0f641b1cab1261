"""State that all links of a port share: the broker's parts and the protocol's settings."""

from dataclasses import dataclass

from gateway.broker.hosts.client_session import SessionContext
from gateway.stream.advertising import Advertising


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
