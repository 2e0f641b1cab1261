"""Settings that the connections of several protocols have, each with values of its own."""

from typing import Any, Self

from pydantic import model_validator

from gateway.settings.fields import KIB, MIB, Integer, Section, in_order, setting


def close_timeout() -> Any:  # noqa: ANN401 - as `setting`
    """Describe the setting `close_timeout_ms`."""
    return setting(
        2_000,
        "Longest time that a client may take to read what is queued for it at the end, also when "
        "the server stops; then it is cut off.",
        unit="milliseconds",
        ge=10,
        le=600_000,
    )


def send_backlog_max(default: int) -> Any:  # noqa: ANN401 - as `setting`
    """Describe the setting `send_backlog_bytes_max`."""
    return setting(
        default,
        "Bytes waiting to be sent to one connection above which it is cut off; not below "
        "send_backlog_pause_bytes.",
        unit="bytes",
        ge=KIB,
        le=1024 * MIB,
    )


class ConnectionSettings(Section):
    """Limits of what waits to be sent."""

    close_timeout_ms: Integer = close_timeout()
    send_backlog_pause_bytes: Integer = setting(
        256 * KIB,
        "Bytes waiting to be sent to one connection above which it is neither read nor served.",
        unit="bytes",
        ge=KIB,
        le=64 * MIB,
    )
    send_backlog_bytes_max: Integer = send_backlog_max(16 * MIB)

    @model_validator(mode="after")
    def _check_backlog(self) -> Self:
        return in_order(self, ("send_backlog_pause_bytes", "send_backlog_bytes_max"))
